package mail

import (
	"strings"
	"testing"
)

// TestTemplates renders each mail with hostile values.
func TestTemplates(t *testing.T) {
	t.Parallel()

	const hostile = `<a href="https://evil.example">{{.link}}</a>` + "\n\nhttps://evil.example\n\n"
	data := map[string]string{"link": "https://example.com/page?token=a&b=c", "server": "https://example.com"}
	for _, name := range []string{"username", "email", "organization", "inviter", "role", "expires", "change", "what",
		"project", "form"} {
		data[name] = hostile
	}

	templates, err := files.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}

	for _, template := range templates {
		name := strings.TrimSuffix(template.Name(), ".txt")
		m, err := Render(name, "ada@example.com", data, hostile, "fine")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		if m.Subject == "" || strings.Contains(m.Subject, "\n") || strings.HasPrefix(m.Text, "\n") ||
			m.To != "ada@example.com" {
			t.Errorf("%s: got %+v", name, m)
		}
		if strings.Contains(m.Text, "\n\nhttps://evil") || strings.Contains(m.HTML, "<a href=\"https://evil") {
			t.Errorf("%s: a value became more than text:\n%s\n%s", name, m.Text, m.HTML)
		}

		const anchor = `<a href="https://example.com/page?token=a&amp;b=c">https://example.com/page?token=a&amp;b=c</a>`
		if linked := strings.Contains(m.Text, data["link"]); linked != strings.Contains(m.HTML, anchor) ||
			strings.Count(m.HTML, "<a ") > 1 {
			t.Errorf("%s: the link in HTML:\n%s", name, m.HTML)
		}
	}

	if _, err := Render("password-reset", "ada@example.com", map[string]string{"username": "ada"}); err == nil {
		t.Error("a mail without its link was written")
	}
	if _, err := Render("absent", "ada@example.com", nil); err == nil {
		t.Error("a mail without a template was written")
	}
}
