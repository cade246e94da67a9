package rules

import (
	"strings"
	"testing"
)

func TestUnknownVariable(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{"{{ .Token }} {{.Data.a_b.c}}": "", "{{ .Secret }}": "{{ .Secret }}",
		"{{ .Token.x }}": "{{ .Token.x }}", "{{ if }}": "{{ if }}", "{{": "{{", "no variables": ""} {
		if got := unknownVariable(text); got != want {
			t.Errorf("unknownVariable(%q) = %q, want %q", text, got, want)
		}
	}

	err := MailText{Subject: "x", Text: "{{ .Code }}"}.check()
	if err == nil || !strings.Contains(err.Error(), "{{ .Token }}") {
		t.Errorf("got %v, want the known variables", err)
	}
}

func TestFill(t *testing.T) {
	t.Parallel()

	got := Fill("a {{ .Token }} {{.Data.x.y}} {{ .Data }} {{ x", func(name string) string { return "<" + name + ">" })
	if want := "a <Token> <Data.x.y> <Data> {{ x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMailText finds the text of a language.
func TestMailText(t *testing.T) {
	t.Parallel()

	text := func(subject string) MailText { return MailText{Subject: subject, Text: "{{ .Token }}"} }
	s := Settings{Mails: map[string]MailText{"confirmation": text("Welcome"), "confirmation.de": text("Willkommen"),
		"confirmation.pt-br": text("Bem-vindo")}}
	for language, want := range map[string]string{"": "Welcome", "de": "Willkommen", "de_AT": "Willkommen",
		"DE-at": "Willkommen", "pt": "Welcome", "pt-BR": "Bem-vindo", "pt_PT": "Welcome", "x": "Welcome"} {
		if got := s.MailText(MailConfirmation, language); got.Subject != want {
			t.Errorf("language %q: got %q, want %q", language, got.Subject, want)
		}
	}

	for kind, want := range defaultMails {
		if got := (&Settings{}).MailText(kind, "de"); got != want {
			t.Errorf("%s: got %+v, want the default", kind, got)
		}
		if err := want.check(); err != nil {
			t.Errorf("the default of %s: %v", kind, err)
		}
	}
}
