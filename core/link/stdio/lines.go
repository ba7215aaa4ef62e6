package stdio

// lines are the messages that wait, in one line for each sender. The lines take turns.
type lines struct {
	bySender map[string]*line
	order    []*line // whose turn it is, first; each holds something
}

// line is what waits of one sender, in order.
type line struct {
	sender string
	turns  [][]byte
	bytes  int
}

func (l *lines) any() bool { return len(l.order) > 0 }

// waiting returns how many bytes wait of a sender.
func (l *lines) waiting(sender string) int {
	if one := l.bySender[sender]; one != nil {
		return one.bytes
	}
	return 0
}

// append calls put to append one message of about size bytes to the line of its sender. It returns how many
// bytes it has.
func (l *lines) append(sender string, size int, put func([]byte) []byte) int {
	one := l.bySender[sender]
	if one == nil {
		one = &line{sender: sender}
		if l.bySender == nil {
			l.bySender = make(map[string]*line)
		}
		l.bySender[sender] = one
		l.order = append(l.order, one)
	}
	last := len(one.turns) - 1
	if last < 0 || len(one.turns[last])+size > turn {
		one.turns = append(one.turns, make([]byte, 0, size))
		last++
	}
	before := len(one.turns[last])
	one.turns[last] = put(one.turns[last])
	added := len(one.turns[last]) - before
	one.bytes += added
	return added
}

// takeTurn removes what is to be written next: one large message, or several small ones of one sender.
func (l *lines) takeTurn() []byte {
	one := l.order[0]
	l.order[0], l.order = nil, l.order[1:]
	next := one.turns[0]
	one.turns[0], one.turns = nil, one.turns[1:]
	one.bytes -= len(next)
	if len(one.turns) > 0 {
		l.order = append(l.order, one)
	} else {
		delete(l.bySender, one.sender)
	}
	return next
}
