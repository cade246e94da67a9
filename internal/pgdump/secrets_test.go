package pgdump_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pgdump"
)

// TestImportNamesSecrets checks that the secrets of Supabase's Vault are left out by name.
func TestImportNamesSecrets(t *testing.T) {
	t.Parallel()

	p := newTarget(t)
	report, err := p.importDump("CREATE EXTENSION IF NOT EXISTS supabase_vault WITH SCHEMA vault;\n"+
		"COPY vault.secrets (id, name, description, secret) FROM stdin;\n"+
		"1\tmailer\t\tc2VjcmV0\n2\t\\N\t\t"+strings.Repeat("x", 200_000)+"\n3\tlast\t\tx\n\\.\n"+
		"CREATE TABLE public.t ();\n", pgdump.Options{})
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, n := range report.Notes {
		if name, ok := strings.CutPrefix(n.Text, "secret "); ok {
			got = append(got, name[:strings.Index(name, ":")])
		}
	}
	if strings.Join(got, ",") != "mailer,without a name,last" {
		t.Errorf("got the secrets %q in %v", got, report.Notes)
	}
	if n := p.value(`select count(*)::text from vault.secrets`); n != "0" ||
		p.value(`select (to_regclass('public.t') is not null)::text`) != "true" {
		t.Errorf("got %s secrets, or no table after them", n)
	}
}
