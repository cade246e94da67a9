package authapi_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/token"
)

// enroll enrolls a factor, which the caller checks.
func (p *app) enroll(bearer, body string) *reply {
	p.t.Helper()
	return p.send("POST", "/factors", bearer, body)
}

// TestFactorNames checks that factors of a user have different names, verified or not.
func TestFactorNames(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	bearer := p.signUp("ann@example.com").text("access_token")
	const conflict = "mfa_factor_name_conflict"

	first := p.enroll(bearer, `{"factor_type":"totp","friendly_name":"mine"}`).want(200)
	p.enroll(bearer, `{"factor_type":"totp","friendly_name":"mine"}`).fails(422, conflict).
		equal("message", `A factor with the friendly name "mine" for this user already exists`)
	p.enroll(bearer, `{"factor_type":"phone","friendly_name":"mine","phone":"+491701"}`).fails(422, conflict)
	p.enroll(bearer, `{"factor_type":"totp"}`).want(200)
	p.enroll(bearer, `{"factor_type":"totp"}`).fails(422, conflict)
	p.send("POST", "/factors/"+first.text("id")+"/challenge", bearer, "{}").want(200)

	// The name of another user's factor is free, and a number that was not verified may be enrolled
	// anew.
	ben := p.signUp("ben@example.com").text("access_token")
	p.enroll(ben, `{"factor_type":"phone","friendly_name":"mine","phone":"+491701"}`).want(200)
	p.enroll(ben, `{"factor_type":"phone","friendly_name":"mine","phone":"+491701"}`).want(200)
}

// TestUnverifiedFactorsEnd checks when the name of a factor that was never verified is free again.
func TestUnverifiedFactorsEnd(t *testing.T) {
	t.Parallel()

	p := newApp(t, byPhone)
	bearer := p.signUp("ann@example.com").text("access_token")

	forgotten := p.enroll(bearer, `{"factor_type":"totp","friendly_name":"forgotten"}`).want(200).text("id")
	challenged := p.enroll(bearer, `{"factor_type":"totp","friendly_name":"challenged"}`).want(200).text("id")
	p.send("POST", "/factors/"+challenged+"/challenge", bearer, "{}").want(200)
	if _, err := p.project.EndUsers().Exec(t.Context(), `
		update auth.mfa_factors set created_at = created_at - interval '6 minutes'`); err != nil {
		t.Fatal(err)
	}

	again := p.enroll(bearer, `{"factor_type":"totp","friendly_name":"forgotten"}`).want(200)
	p.send("POST", "/factors/"+forgotten+"/challenge", bearer, "{}").fails(404, "mfa_factor_not_found")
	p.enroll(bearer, `{"factor_type":"totp","friendly_name":"challenged"}`).fails(422, "mfa_factor_name_conflict")
	p.enroll(bearer, `{"factor_type":"phone","friendly_name":"phone","phone":"+491701"}`).want(200)

	// The first verified factor ends all unverified ones.
	secret, err := token.ParseTOTPText(again.text("totp.secret"))
	if err != nil {
		t.Fatal(err)
	}

	path := "/factors/" + again.text("id")
	verified := p.send("POST", path+"/verify", bearer, `{"challenge_id":"`+
		p.send("POST", path+"/challenge", bearer, "{}").want(200).text("id")+`","code":"`+
		token.TOTPCode(secret, token.TOTPStep(time.Now()))+`"}`).want(200)
	bearer = verified.text("access_token")

	user := p.send("GET", "/user", bearer, "").want(200).raw
	if strings.Contains(user, challenged) || !strings.Contains(user, again.text("id")) ||
		strings.Contains(user, `"friendly_name":"phone"`) {
		t.Errorf("got %s, want the verified factor only", user)
	}
	p.enroll(bearer, `{"factor_type":"totp","friendly_name":"challenged"}`).want(200)
	p.enroll(bearer, `{"factor_type":"totp","friendly_name":"forgotten"}`).fails(422, "mfa_factor_name_conflict")
}

// TestFactorNamesAtOnce enrolls factors of one name at once: one of them is enrolled.
func TestFactorNamesAtOnce(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	bearer := p.signUp("ann@example.com").text("access_token")

	replies := make([]*reply, 6)
	var group sync.WaitGroup
	for i := range replies {
		group.Go(func() { replies[i] = p.enroll(bearer, `{"factor_type":"totp","friendly_name":"mine"}`) })
	}
	group.Wait()

	enrolled := 0
	for _, r := range replies {
		if r.status == 200 {
			enrolled++
			continue
		}
		r.fails(422, "mfa_factor_name_conflict")
	}
	if enrolled != 1 {
		t.Errorf("enrolled %d factors of one name, want 1", enrolled)
	}
}
