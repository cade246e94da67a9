package message

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/socle-dev/socle/internal/outbound"
)

// TestFailureText: administrators of a project learn neither what is in the server's networks nor
// what the server of the install says.
func TestFailureText(t *testing.T) {
	t.Parallel()

	const unreachable = "the server can't be reached or does not respond"
	for _, tt := range []struct {
		byInstall bool
		err       error
		want      string
	}{
		{false, errors.New("mail: 550 no such mailbox"), "mail: 550 no such mailbox"},
		{true, errors.New("mail: 550 no such mailbox"), "the mail server of the install did not accept it"},
		{false, fmt.Errorf("mail: %w", &net.OpError{Err: outbound.ErrNetwork}), unreachable},
		{false, &url.Error{Err: &net.OpError{Err: &net.DNSError{Name: "secret.internal"}}}, unreachable},
		{false, fmt.Errorf("mail: %w", context.DeadlineExceeded), unreachable},
	} {
		if got := failureText(tt.err, tt.byInstall); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}
