package core

// Attachment is a file that a person attached to a message.
type Attachment struct {
	ID       string // att_ and 16 hexadecimal digits
	Name     string
	MIMEType string
	Content  []byte
}
