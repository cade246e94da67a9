package statement

import (
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// withoutSecrets returns a text for the history. If it names schema vault, its strings and
// comments are left out: backups have the history, and may have no vault secret in the clear.
func withoutSecrets(text string) string {
	if !strings.Contains(strings.ToLower(text), "vault") {
		return text
	}

	var b strings.Builder
	end := 0
	l := sqllex.New(text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		if t.Kind == sqllex.String || t.Kind == sqllex.DollarString || t.Kind == sqllex.Comment {
			b.WriteString(text[end:t.Start] + "'…'")
			end = t.End
		}
	}

	return b.String() + text[end:]
}
