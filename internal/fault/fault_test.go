package fault_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

func TestRecover(t *testing.T) {
	t.Parallel()

	work := func(f func()) (err error) {
		defer fault.Recover(&err)
		f()
		return nil
	}

	if err := work(func() {}); err != nil {
		t.Errorf("without a panic: %v", err)
	}

	err := work(func() { panic("torn paper") })
	if err == nil || !strings.Contains(err.Error(), "torn paper") || !strings.Contains(err.Error(), "fault_test.go") {
		t.Errorf("error %v, want the panic and where it was", err)
	}
	if !fault.Is(err, fault.Internal) {
		t.Errorf("a client may see the kind %v", fault.Of(err).Kind)
	}
}
