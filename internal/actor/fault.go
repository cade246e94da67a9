package actor

import (
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Fault classifies an error from an actor's statement, which may come from user code in policies.
// Error texts stay in the log.
func Fault(err error) error {
	const queryCanceled, insufficientPrivilege, readOnlyTransaction = "57014", "42501", "25006"

	state := pg.State(err)
	switch state {
	case queryCanceled:
		return fault.New(fault.Unavailable, "the policies took too long").WithCode("policy_timeout").WithCause(err)
	case insufficientPrivilege:
		return fault.New(fault.Forbidden, "new row violates row-level security policy").WithCause(err)
	}

	failure := pg.Fault(err)
	if state == "" || (state != readOnlyTransaction && fault.Of(failure).Kind != fault.Internal) {
		return failure
	}

	return fault.New(fault.Unprocessable, "a policy of the project failed with SQLSTATE %s", state).
		WithCode("policy_failed").WithCause(err)
}
