package enduser

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/token"
)

// withPhones lets users sign in with numbers and have them as factors. 491700000000 is a test
// number.
func withPhones(c *rules.Config) {
	c.SMS = rules.SMS{SignIn: true, Factors: true, TestNumbers: map[string]string{"491700000000": "246810"}}
}

// challenge creates a challenge of a factor.
func (u *users) challenge(who Identity, factor uuid.UUID) (uuid.UUID, error) {
	c, err := u.ChallengeFactor(u.t.Context(), who, factor, "", home)
	return c.ID, err
}

// totp returns the present code of a factor.
func (u *users) totp(f Enrolled) string {
	u.t.Helper()

	text, err := token.ParseTOTPText(f.Secret)
	ok(u.t, err)

	return token.TOTPCode(text, token.TOTPStep(time.Now()))
}

// verifyTOTP verifies a factor by a code.
func (u *users) verifyTOTP(who Identity, f Enrolled, code string) (Session, error) {
	u.t.Helper()

	id, err := u.challenge(who, f.ID)
	ok(u.t, err)

	return u.VerifyFactor(u.t.Context(), who, f.ID, id, code, home)
}

// TestTOTP enrolls a factor of time-based codes: it raises its session, ends others, and each code
// counts once.
func TestTOTP(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann := u.user("ann@example.com")
	own, other := u.session(ann).identity(), u.session(ann).identity()
	factor, err := u.EnrollFactor(t.Context(), own, "phone", "Example")
	ok(t, err)

	id, err := u.challenge(own, factor.ID)
	ok(t, err)
	_, err = u.VerifyFactor(t.Context(), own, factor.ID, id, "000000x", home)
	want(t, err, fault.Unprocessable, "mfa_verification_failed")
	code := u.totp(factor)
	raised, err := u.verifyTOTP(own, factor, code)
	ok(t, err)
	who, err := u.authenticate(t.Context(), u.Rows(), raised.identity())
	ok(t, err)
	if who.AAL != "aal2" {
		t.Errorf("got the level %s, want aal2", who.AAL)
	}
	_, err = u.verifyTOTP(own, factor, code)
	want(t, err, fault.Unprocessable, "mfa_verification_failed")
	_, err = u.Authenticate(t.Context(), other)
	want(t, err, fault.Forbidden, "session_not_found")

	low := u.session(ann).identity()
	_, err = u.UpdateSelf(t.Context(), low, Update{Password: "another " + secret}, home)
	want(t, err, fault.Unauthenticated, "insufficient_aal")
	want(t, u.UnenrollFactor(t.Context(), low, factor.ID, home), fault.Unprocessable, "insufficient_aal")
	_, err = u.EnrollFactor(t.Context(), low, "other", "")
	want(t, err, fault.Forbidden, "insufficient_aal")

	ok(t, u.UnenrollFactor(t.Context(), own, factor.ID, home))
	who, err = u.authenticate(t.Context(), u.Rows(), own)
	ok(t, err)
	if who.AAL != "aal1" {
		t.Errorf("without the factor: got the level %s, want aal1", who.AAL)
	}
	_, err = u.challenge(own, factor.ID)
	want(t, err, fault.NotFound, "mfa_factor_not_found")
}

// TestFactorNames checks that factors of a user have different names, verified or not.
func TestFactorNames(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	ann, ben := u.session(u.user("ann@example.com")).identity(), u.session(u.user("ben@example.com")).identity()
	enroll := func(who Identity, name string) error {
		_, err := u.EnrollFactor(t.Context(), who, name, "")
		return err
	}
	enrollPhone := func(who Identity, name string) error {
		_, err := u.EnrollPhone(t.Context(), who, name, "+491701")
		return err
	}

	ok(t, enroll(ann, "mine"))
	want(t, enroll(ann, "mine"), fault.Unprocessable, "mfa_factor_name_conflict")
	want(t, enrollPhone(ann, "mine"), fault.Unprocessable, "mfa_factor_name_conflict")
	ok(t, enroll(ann, ""))
	want(t, enroll(ann, ""), fault.Unprocessable, "mfa_factor_name_conflict")

	// The name of another user's factor is free, and a number that was not verified may be enrolled
	// anew.
	ok(t, enrollPhone(ben, "mine"))
	ok(t, enrollPhone(ben, "mine"))
}

// TestUnverifiedFactorsEnd checks when the name of a factor that was never verified is free again.
func TestUnverifiedFactorsEnd(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	who := u.session(u.user("ann@example.com")).identity()
	enroll := func(name string) (Enrolled, error) { return u.EnrollFactor(t.Context(), who, name, "") }

	forgotten, err := enroll("forgotten")
	ok(t, err)
	challenged, err := enroll("challenged")
	ok(t, err)
	_, err = u.challenge(who, challenged.ID)
	ok(t, err)
	u.exec(`update auth.mfa_factors set created_at = created_at - interval '6 minutes'`)

	again, err := enroll("forgotten")
	ok(t, err)
	_, err = u.challenge(who, forgotten.ID)
	want(t, err, fault.NotFound, "mfa_factor_not_found")
	_, err = enroll("challenged")
	want(t, err, fault.Unprocessable, "mfa_factor_name_conflict")

	// The first verified factor ends all unverified ones.
	_, err = u.verifyTOTP(who, again, u.totp(again))
	ok(t, err)
	factors, err := u.ListFactors(t.Context(), who.User)
	ok(t, err)
	if len(factors) != 1 || factors[0].ID != again.ID {
		t.Errorf("got the factors %+v, want the verified one", factors)
	}
}

// TestFactorNamesAtOnce enrolls factors of one name at once: one of them is enrolled.
func TestFactorNamesAtOnce(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	who := u.session(u.user("ann@example.com")).identity()
	failures := make([]error, 6)
	var group sync.WaitGroup
	for i := range failures {
		group.Go(func() { _, failures[i] = u.EnrollFactor(t.Context(), who, "mine", "") })
	}
	group.Wait()

	enrolled := 0
	for _, err := range failures {
		if err == nil {
			enrolled++
			continue
		}
		want(t, err, fault.Unprocessable, "mfa_factor_name_conflict")
	}
	if enrolled != 1 {
		t.Errorf("enrolled %d factors of one name, want 1", enrolled)
	}
}

// TestPhoneFactor has a phone as a second factor.
func TestPhoneFactor(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	who := u.session(u.user("ann@example.com")).identity()
	enroll := func(name, number string) Factor {
		t.Helper()

		f, err := u.EnrollPhone(t.Context(), who, name, number)
		ok(t, err)

		return f
	}
	verify := func(factor, challenge uuid.UUID, code string) error {
		_, err := u.VerifyFactor(t.Context(), who, factor, challenge, code, home)
		return err
	}

	f := enroll("mine", "+49 1701")
	id, err := u.challenge(who, f.ID)
	ok(t, err)
	code := u.sms("491701")
	want(t, verify(f.ID, id, wrongCode(code)), fault.Unprocessable, "mfa_verification_failed")
	_, err = u.VerifyPhone(t.Context(), "sms", "491701", code, home)
	want(t, err, fault.Forbidden, "otp_expired") // it signs no one in
	ok(t, verify(f.ID, id, code))
	want(t, verify(f.ID, id, code), fault.Unprocessable, "mfa_challenge_expired")
	_, err = u.EnrollPhone(t.Context(), who, "again", "491701")
	want(t, err, fault.Unprocessable, "mfa_verified_factor_exists")

	// The challenge of one factor is none of another, and a test number has its code.
	second, test := enroll("second", "491702"), enroll("test", "491700000000")
	id, err = u.challenge(who, second.ID)
	ok(t, err)
	want(t, verify(f.ID, id, u.sms("491702")), fault.Unprocessable, "mfa_challenge_expired")
	id, err = u.challenge(who, test.ID)
	ok(t, err)
	ok(t, verify(test.ID, id, "246810"))
}

// TestRecoveryCodes: each code counts once, for its user, until the set is replaced.
func TestRecoveryCodes(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann := u.user("ann@example.com")
	who := u.session(ann).identity()
	_, err := u.CreateRecoveryCodes(t.Context(), who, home)
	want(t, err, fault.Unprocessable, "mfa_factor_not_found")
	factor, err := u.EnrollFactor(t.Context(), who, "mine", "")
	ok(t, err)
	_, err = u.verifyTOTP(who, factor, u.totp(factor))
	ok(t, err)

	former, err := u.CreateRecoveryCodes(t.Context(), who, home)
	ok(t, err)
	codes, err := u.CreateRecoveryCodes(t.Context(), who, home)
	ok(t, err)
	low, ben := u.session(ann).identity(), u.session(u.user("ben@example.com")).identity()
	_, err = u.CreateRecoveryCodes(t.Context(), low, home)
	want(t, err, fault.Forbidden, "insufficient_aal")
	use := func(who Identity, code string) error {
		_, err := u.UseRecoveryCode(t.Context(), who, code, home)
		return err
	}

	for _, code := range []string{"", "nonsense", former[0]} {
		want(t, use(low, code), fault.Unprocessable, "mfa_verification_failed")
	}
	want(t, use(ben, codes[0]), fault.Unprocessable, "mfa_verification_failed")
	ok(t, use(low, codes[0]))
	want(t, use(low, codes[0]), fault.Unprocessable, "mfa_verification_failed")
	if n, err := u.CountRecoveryCodes(t.Context(), who); err != nil || n != len(codes)-1 {
		t.Errorf("got %d unused codes (%v), want %d", n, err, len(codes)-1)
	}

	ok(t, u.UnenrollFactor(t.Context(), who, factor.ID, home))
	if n, err := u.CountRecoveryCodes(t.Context(), who); err != nil || n != 0 {
		t.Errorf("got %d unused codes without a factor (%v), want none", n, err)
	}
}
