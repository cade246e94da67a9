package hook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()

	for address, want := range map[string]bool{
		"pg-functions://postgres/public/f": true, "pg-functions://postgres/a b/\"x": true,
		"https://example.com/hook": true, "http://127.0.0.1:8": true,

		"": false, "public.f": false, "pg-functions://postgres/f": false, "pg-functions://postgres/public/": false,
		"pg-functions://other/public/f": false, "pg-functions://postgres/public/f/g": false,
		"pg-functions://postgres/public/f?x": false, "pg-functions://postgres/public/%00": false,
		"pg-functions://postgres/public/" + strings.Repeat("x", 64): false,
		"https://user@example.com/":                                 false, "https://example.com/?key=x": false, "ftp://example.com/": false,
		"https://example.com/" + strings.Repeat("x", 500): false,
	} {
		if got := hook.CheckAddress(address) == nil; got != want {
			t.Errorf("CheckAddress(%q) accepts: %v, want %v", address, got, want)
		}
	}
}

func TestParseReply(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]hook.Reply{
		"": {}, "{}": {}, `{"decision":"reject","message":"No"}`: {Decision: "reject", Message: "No"},
		`{"error":{"http_code":403}}`: {}, // without a message it is no error, as in the contract
	} {
		got, err := hook.ParseReply([]byte(text))
		if err != nil || got.Decision != want.Decision || got.Message != want.Message {
			t.Errorf("ParseReply(%s) = %+v, %v", text, got, err)
		}
	}

	for text, want := range map[string]hook.Rejection{
		`{"error":{"http_code":403,"message":"Not today"}}`:        {Status: 403, Message: "Not today"},
		`{"error":{"http_code":200,"message":"Not today"}}`:        {Status: 500, Message: "Not today"},
		`{"error":{"message":"` + strings.Repeat("é", 600) + `"}}`: {Status: 500, Message: strings.Repeat("é", 500)},
	} {
		_, err := hook.ParseReply([]byte(text))
		if got, ok := errors.AsType[*hook.Rejection](err); !ok || *got != want {
			t.Errorf("ParseReply(%.60s): got %v, want %v", text, err, want)
		}
	}

	for text, want := range map[string]fault.Kind{"[1]": fault.Internal, "x": fault.Internal,
		`"` + strings.Repeat("x", 64<<10) + `"`: fault.Unprocessable} {
		if _, err := hook.ParseReply([]byte(text)); fault.Of(err).Kind != want {
			t.Errorf("ParseReply(%.20s): got %v, want the kind %d", text, err, want)
		}
	}
}

// TestAtRefresh: the failure of a hook never ends a session, its rejection does.
func TestAtRefresh(t *testing.T) {
	t.Parallel()

	for _, code := range []string{"hook_timeout", "hook_timeout_after_retry", "hook_payload_over_size_limit",
		"hook_payload_invalid_content_type", "unexpected_failure"} {
		got := fault.Of(hook.AtRefresh(hook.Failure(code, "x")))
		if got.Kind != fault.Internal || got.Code != code || got.Detail != "x" {
			t.Errorf("%s: got %+v", code, got)
		}
	}

	rejection := &hook.Rejection{Status: 403}
	if got := hook.AtRefresh(rejection); !errors.Is(got, rejection) {
		t.Errorf("got %v, want the rejection", got)
	}
}
