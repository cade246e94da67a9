package query

// Error is a client error in the contract's words: the fields of the response body and the HTTP
// status.
type Error struct {
	Status        int
	Code, Message string
	Details, Hint any // string, or slice of maps; nil is null
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }
