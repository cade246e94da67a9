package enduser

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

func TestSMSSettings(t *testing.T) {
	t.Parallel()

	twilio := SMS{Sender: "twilio", TwilioAccountSID: "AC1", TwilioFrom: "Example"}
	for name, s := range map[string]SMS{
		"zero": {}, "mailbox": {Sender: "mailbox"}, "twilio": twilio,
		"hook": {Sender: "hook", HookURL: "https://sms.example.com/send"},
		"more": {SignIn: true, Text: "{{.Token}} at {{ .SiteURL }}", CallingCodes: []string{"49", "1"},
			TestNumbers: map[string]string{"491701": "123456"}},
	} {
		if err := s.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	for want, s := range map[string]SMS{
		"sender must":             {Sender: "pigeon"},
		"hook_url must":           {Sender: "hook"},
		"twilio_account_sid":      {Sender: "twilio", TwilioAccountSID: "../AC1"},
		"twilio_from or":          {Sender: "twilio", TwilioAccountSID: "AC1"},
		"twilio_messaging":        {Sender: "twilio", TwilioAccountSID: "AC1", TwilioMessagingServiceSID: "/"},
		"twilio_url":              {Sender: "twilio", TwilioAccountSID: "AC1", TwilioFrom: "1", TwilioURL: "x"},
		"interval_seconds must":   {IntervalSeconds: -1},
		"per_hour must":           {PerHour: 5001},
		"text must contain":       {Text: "Hello"},
		"text must have":          {Text: "{{ .Token }} {{ .Email }}"},
		"test_numbers must map":   {TestNumbers: map[string]string{"491701": "12345"}},
		"calling_codes must be":   {CallingCodes: []string{"+49"}},
		"calling_codes must have": {CallingCodes: make([]string, maxCallingCodes+1)},
	} {
		if err := s.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", s, err, want)
		}
	}

	if s := (SMS{CallingCodes: []string{"49"}}); !s.allows("49170") || s.allows("883123") || !(SMS{}).allows("883123") {
		t.Error("calling codes don't decide where messages go")
	}
}

func TestCleanPhone(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{"+49 170 1234567": "491701234567", "491701234567": "491701234567",
		" +1 555 010 0000": "15550100000", "": "", "+": "", "0170": "", "+49-170": "", "++49170": "", "1": "",
		"1234567890123456": "", "４９１７０": ""} {
		got, err := cleanPhone(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("cleanPhone(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestSMSFailures checks which failures of a sender another attempt may repair.
func TestSMSFailures(t *testing.T) {
	t.Parallel()

	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)

	send := func(ctx context.Context, allowed ...netip.Prefix) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		d := &Directory{db: &projectdb.Project{}, service: &Service{Config{Outbound: outbound.New(allowed)}}}
		return d.send(ctx, r)
	}

	for _, tt := range []struct {
		status        int
		body          string
		fails, refuse bool
	}{
		{200, `{}`, false, false}, {201, `no JSON`, false, false}, {429, ``, true, false}, {503, ``, true, false},
		{400, ``, true, true}, {200, `{"error": {"http_code": 400, "message": "unknown number"}}`, true, true},
	} {
		status, body = tt.status, tt.body
		if err := send(t.Context(), netip.MustParsePrefix("127.0.0.0/8")); (err != nil) != tt.fails ||
			errors.Is(err, errSMSRefused) != tt.refuse {
			t.Errorf("%d %s: got %v", tt.status, tt.body, err)
		}
	}

	if err := send(t.Context()); !errors.Is(err, errSMSRefused) {
		t.Errorf("a private network: got %v, want a refusal", err)
	}
}
