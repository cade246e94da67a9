package authapi_test

import (
	"crypto/sha1" //nolint:gosec // names ranges of leaked passwords
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
)

// reasons returns the rules that a password breaks, as clients read them.
func (r *reply) reasons() string {
	members, _ := r.fails(422, "weak_password").body["weak_password"].(map[string]any)
	return fmt.Sprint(members["reasons"])
}

func TestLeakedPasswords(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { autoconfirm(s); s.LeakedPasswordCheck = true })

	hash := sha1.Sum([]byte("leaked horse battery")) //nolint:gosec // the name of its range
	sum := strings.ToUpper(hex.EncodeToString(hash[:]))
	if err := os.MkdirAll(p.Config.LeakedPasswords, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(p.Config.LeakedPasswords, sum[:5]+".txt")
	if err := os.WriteFile(name, []byte(sum[5:]+":7\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	got := p.post("/signup", `{"email":"ann@example.com","password":"leaked horse battery"}`).reasons()
	if got != "[pwned]" {
		t.Errorf("got the reasons %s, want [pwned]", got)
	}

	// A range that can't be read refuses nobody.
	session := p.signUp("ann@example.com").text("access_token")
	p.send("PUT", "/user", session, `{"password":"leaked horse battery"}`).fails(422, "weak_password")
	p.send("POST", "/admin/users", p.secret, `{"email":"x@example.com","password":"leaked horse battery"}`).
		fails(422, "weak_password")

	q := newApp(t, autoconfirm)
	q.post("/signup", `{"email":"ann@example.com","password":"leaked horse battery"}`).want(200)
}
