package enduser

import "testing"

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
