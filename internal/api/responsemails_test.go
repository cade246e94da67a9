package api_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// TestResponseMails has a mail about the first response sent at once, and one about all that come
// within the next minutes.
func TestResponseMails(t *testing.T) {
	t.Parallel()

	a := apitest.New(t, func(c *config.Config) { c.RateLimit = true })
	project := a.ConnectProject()
	if _, err := project.Exec(t.Context(), `
		insert into forms.recipients (email) values ('desk@example.com'), ('boss@example.com'), ('new@example.com')`,
	); err != nil {
		t.Fatal(err)
	}

	f := openSurvey(t, a, `{"label": "Name", "name": "name", "type": "text"},
		{"label": "Text", "name": "text", "type": "textarea"},
		{"label": "Topics", "name": "topics", "type": "multiselect", "options": "a,b"}`,
		`"notify_emails": ["desk@example.com", "boss@example.com", "desk@example.com"], "honeypot": "website"`)
	a.Get(f.path).Want(200).Content("notifyEmails", "[desk@example.com boss@example.com]")

	post := func(body string) *apitest.Reply {
		t.Helper()

		return a.Anonymous().WithProject("").Post(f.path+"/responses?link="+
			a.Post(f.path+"/link", "").Want(201).Get("link").(string), `{"answers": `+body+`}`).Want(201)
	}

	post(`{"name": "spam", "website": "x"}`) // tells nobody
	post(`{"name": "Ada\u2028<b>", "text": "one\n\nName: Mallory", "topics": ["a", "b"]}`)

	for _, to := range []string{"desk@example.com", "boss@example.com"} {
		m := waitForMail(t, a, to, 1)
		if m.Subject != "New response to Survey" {
			t.Errorf("got subject %q", m.Subject)
		}
		for _, want := range []string{"Name: Ada <b>\n", "Text: one\n    Name: Mallory\n", "Topics: a; b\n", a.URL} {
			if !strings.Contains(m.Text, want) {
				t.Errorf("the mail lacks %q:\n%s", want, m.Text)
			}
		}
	}

	// Within the window, responses wait for one mail.
	deleted := post(`{"name": "deleted"}`).Get("uuid").(string)
	post(`{"name": "Bob"}`)
	post(`{"name": "Eve"}`)
	a.Delete(f.path + "/responses/" + deleted).Want(200)

	waiting := func() bool {
		return apitest.Value[int64](a, `
			select count(*) from river.river_job where kind = 'form_notification' and state = 'scheduled'`) == 1
	}
	until(t, "the job waits", waiting)
	if n := len(mails(t, a, "desk@example.com")); n != 1 {
		t.Fatalf("got %d mails within the window, want 1", n)
	}

	// The job is lost with its server; the sweep enqueues another one.
	a.Exec(`delete from river.river_job where kind = 'form_notification'`)
	a.Exec(`delete from platform.attempts`)
	if err := a.Server.Services().Queue.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	m := waitForMail(t, a, "desk@example.com", 2)
	if m.Subject != "2 new responses to Survey" || !strings.Contains(m.Text, "Name: Bob") ||
		!strings.Contains(m.Text, "Name: Eve") || strings.Contains(m.Text, "deleted") {
		t.Errorf("got %+v", m)
	}

	// A partial response causes no mail until it is complete.
	a.Exec(`delete from platform.attempts`)
	a.Put(f.path, `{"notify_emails": ["boss@example.com"]}`).Want(200)
	waitForMail(t, a, "boss@example.com", 2)
	partial := a.Post(f.path+"/responses", `{"answers": {"name": "later"}, "partial": true}`).Want(201)
	a.Put(f.path+"/responses/"+partial.Get("uuid").(string),
		fmt.Sprintf(`{"token": %q, "answers": {}}`, partial.Metadata("token"))).Want(200)
	if m := waitForMail(t, a, "boss@example.com", 3); !strings.Contains(m.Text, "Name: later") {
		t.Errorf("got %+v", m)
	}

	// An address gets a bounded number of mails a day, of all forms of an account together.
	a.Exec(`delete from platform.attempts`)
	limited := sha256.Sum256([]byte("response mail recipient\x00" + a.User + "\x00boss@example.com"))
	a.Exec(`insert into platform.attempts (key, count, resets_at) values ($1, 100, now() + interval '1 day')`, limited[:])
	a.Put(f.path, `{"notify_emails": ["Boss@example.com", "new@example.com"]}`).Want(200)
	post(`{"name": "last"}`)
	waitForMail(t, a, "new@example.com", 1)
	if n := len(mails(t, a, "Boss@example.com")); n != 0 {
		t.Errorf("got %d mails beyond the limit", n)
	}
}
