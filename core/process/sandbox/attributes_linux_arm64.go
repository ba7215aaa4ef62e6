package sandbox

// attributesHere does nothing: this architecture has no other calls.
func (b *Broker) attributesHere() {}
