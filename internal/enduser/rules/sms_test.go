package rules

import (
	"strings"
	"testing"
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

	if s := (SMS{CallingCodes: []string{"49"}}); !s.Allows("49170") || s.Allows("883123") || !(SMS{}).Allows("883123") {
		t.Error("calling codes don't decide where messages go")
	}
}
