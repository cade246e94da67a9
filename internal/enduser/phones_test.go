package enduser

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
)

// verifyPhone confirms a number by a code.
func (u *users) verifyPhone(kind, phone, code string) (Session, error) {
	return u.VerifyPhone(u.t.Context(), kind, phone, code, home)
}

// signUpByPhone signs up with a number and returns the code.
func (u *users) signUpByPhone(phone, password string) string {
	u.t.Helper()

	_, err := u.SignUpByPhone(u.t.Context(), PhoneSignUp{Phone: phone, Password: password}, home)
	ok(u.t, err)

	return u.sms(strings.TrimPrefix(phone, "+"))
}

// TestFirstProofOfNumber: a stranger signs up with a number of someone else, who then asks for a
// code.
func TestFirstProofOfNumber(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	login := func(phone, password string) error {
		_, err := u.LoginByPhone(t.Context(), phone, password, home)
		return err
	}

	u.signUpByPhone("+491701", strangers)
	want(t, login("+491701", strangers), fault.Invalid, "phone_not_confirmed")
	ok(t, u.SendPhoneCode(t.Context(), PhoneCodeRequest{Phone: "+491701"}, home))
	code := u.sms("491701")
	late := u.signUpByPhone("+491701", strangers) // changes nothing about the code before
	_, err := u.verifyPhone("sms", "491701", code)
	ok(t, err)
	want(t, login("+491701", strangers), fault.Invalid, "invalid_credentials")
	_, err = u.verifyPhone("sms", "491701", late)
	want(t, err, fault.Forbidden, "otp_expired")

	u.signUpByPhone("+491702", strangers)
	_, err = u.verifyPhone("sms", "491702", u.signUpByPhone("+491702", secret))
	ok(t, err)
	want(t, login("+491702", strangers), fault.Invalid, "invalid_credentials")
	ok(t, login("+491702", secret))
}

func TestPhoneCodes(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	ask := func(in PhoneCodeRequest) error { return u.SendPhoneCode(t.Context(), in, home) }
	want(t, ask(PhoneCodeRequest{Phone: "+491701"}), fault.Unprocessable, "otp_disabled")
	want(t, ask(PhoneCodeRequest{Phone: "nonsense", CreateUser: true}), fault.Invalid, "validation_failed")
	want(t, ask(PhoneCodeRequest{Phone: "+491701", Channel: "fax"}), fault.Invalid, "validation_failed")
	want(t, ask(PhoneCodeRequest{Phone: "+491701", Channel: "whatsapp"}), fault.Invalid, "validation_failed")

	ok(t, ask(PhoneCodeRequest{Phone: "+491701", CreateUser: true, Data: []byte(`{"a":"b"}`)}))
	former := u.sms("491701")
	ok(t, u.ResendPhoneCode(t.Context(), "sms", "+491701", home))
	ok(t, u.ResendPhoneCode(t.Context(), "sms", "+4999", home)) // unknown
	code := u.sms("491701")
	if former != code {
		_, err := u.verifyPhone("sms", "491701", former)
		want(t, err, fault.Forbidden, "otp_expired")
	}
	_, err := u.verifyPhone("phone_change", "491701", code)
	want(t, err, fault.Forbidden, "otp_expired")
	s, err := u.verifyPhone("sms", "491701", code)
	ok(t, err)
	if string(s.User.UserMetadata) != `{"a": "b"}` || s.User.PhoneConfirmedAt == nil {
		t.Errorf("got %+v", s.User)
	}

	ok(t, ask(PhoneCodeRequest{Phone: "+491701"}))
	code = u.sms("491701")
	u.exec(`update auth.one_time_tokens set attempts = $1`, maxCodeAttempts-1)
	for _, code := range []string{wrongCode(code), code} {
		_, err = u.verifyPhone("sms", "491701", code)
		want(t, err, fault.Forbidden, "otp_expired")
	}

	// A test number has its code, once, and no message.
	ok(t, ask(PhoneCodeRequest{Phone: "+491700000000", CreateUser: true}))
	_, err = u.verifyPhone("sms", "491700000000", "135791")
	want(t, err, fault.Forbidden, "otp_expired")
	_, err = u.verifyPhone("sms", "491700000000", "246810")
	ok(t, err)
	_, err = u.verifyPhone("sms", "491700000000", "246810")
	want(t, err, fault.Forbidden, "otp_expired")
	if jobs := takeJobs[smsArgs](u); len(jobs) != 0 {
		t.Errorf("got the messages %+v, want none", jobs)
	}
}

func TestPhoneChange(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	ann, ben := u.session(u.user("ann@example.com")).identity(), u.session(u.user("ben@example.com")).identity()
	change := func(who Identity, phone string) string {
		t.Helper()

		got, err := u.UpdateSelf(t.Context(), who, Update{Phone: phone}, home)
		ok(t, err)
		if got.NewPhone != phone {
			t.Errorf("got the new number %q, want %s", got.NewPhone, phone)
		}

		return u.sms(phone)
	}

	change(ann, "491701")
	code := change(ann, "491702")
	_, err := u.verifyPhone("sms", "491702", code)
	want(t, err, fault.Forbidden, "otp_expired")
	s, err := u.verifyPhone("phone_change", "491702", code)
	ok(t, err)
	if s.User.Phone != "491702" || s.User.Email != "ann@example.com" ||
		!strings.Contains(string(s.User.AppMetadata), `"providers": ["email", "phone"]`) {
		t.Errorf("got %+v", s.User)
	}

	_, err = u.UpdateSelf(t.Context(), ben, Update{Phone: "+491702"}, home)
	want(t, err, fault.Unprocessable, "phone_exists")

	// Of two users who ask for a number, the first one with the code gets it.
	former := change(ben, "491704")
	_, err = u.verifyPhone("phone_change", "491704", change(ann, "491704"))
	ok(t, err)
	_, err = u.verifyPhone("phone_change", "491704", former)
	want(t, err, fault.Unprocessable, "phone_exists")

	change(ann, "491705")
	ok(t, u.ResendPhoneCode(t.Context(), "phone_change", "+491704", home))
	_, err = u.verifyPhone("phone_change", "491705", u.sms("491705"))
	ok(t, err)
}

// TestPhoneAutoConfirm needs no code.
func TestPhoneAutoConfirm(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) { withPhones(c); c.SMS.AutoConfirm, c.AnonymousSignIn = true, true })
	in := PhoneSignUp{Phone: "+491701", Password: secret}
	got, err := u.SignUpByPhone(t.Context(), in, home)
	ok(t, err)
	_, err = u.SignUpByPhone(t.Context(), in, home)
	want(t, err, fault.Unprocessable, "user_already_exists")

	changed, err := u.UpdateSelf(t.Context(), got.Session.identity(), Update{Phone: "+491702"}, home)
	ok(t, err)
	if changed.Phone != "491702" || changed.NewPhone != "" {
		t.Errorf("got the number %s and the new one %q", changed.Phone, changed.NewPhone)
	}

	// A number makes an anonymous user a permanent one.
	anonymous, err := u.SignInAnonymously(t.Context(), nil, home)
	ok(t, err)
	changed, err = u.UpdateSelf(t.Context(), anonymous.identity(), Update{Phone: "+491703"}, home)
	ok(t, err)
	if changed.IsAnonymous || !strings.Contains(string(changed.AppMetadata), `"provider": "phone"`) {
		t.Errorf("got %+v, want a permanent user", changed)
	}
}
