package query

// Error is a client's error in the contract's own words: what the body of the answer says, and its HTTP status.
type Error struct {
	Status        int
	Code, Message string
	Details, Hint any // text, or maps in a slice; nil is null
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }
