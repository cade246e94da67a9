package api_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

var linkInMail = regexp.MustCompile(`/accept-invitation\?token=(\S+)`)

// mailsTo returns the texts of the mails to an address in the log of the server.
func mailsTo(t *testing.T, a *apitest.API, email string) []string {
	t.Helper()

	var texts []string
	for _, m := range mails(t, a, email) {
		texts = append(texts, m.Text)
	}

	return texts
}

// waitForInvitation waits for a mail to an address and returns the token in the link of the last
// one.
func waitForInvitation(t *testing.T, a *apitest.API, email string) string {
	t.Helper()

	return waitForNextInvitation(t, a, email, 0)
}

// waitForNextInvitation is like waitForInvitation, but ignores the first n mails.
func waitForNextInvitation(t *testing.T, a *apitest.API, email string, n int) string {
	t.Helper()

	until(t, "a mail is sent to "+email, func() bool { return len(mailsTo(t, a, email)) > n })
	all := mailsTo(t, a, email)
	found := linkInMail.FindStringSubmatch(all[len(all)-1])
	if found == nil {
		t.Fatalf("no link in %q", all[len(all)-1])
	}

	token, err := url.QueryUnescape(found[1])
	if err != nil {
		t.Fatal(err)
	}

	return token
}

func invitationBody(email string, role int) string {
	return fmt.Sprintf(`{"email": %q, "role_id": %d}`, email, role)
}

func acceptBody(token string) string { return fmt.Sprintf(`{"token": %q}`, token) }

func TestCreateInvitation(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/organizations/" + a.Organization + "/invitations"
	admin, viewer := a.Member(3), a.Member(5)

	r := a.Post(path, invitationBody(" Ann@example.com", 4)).Want(201).Content("email", "Ann@example.com").
		Content("roleId", 4).Content("createdBy", a.User)
	if strings.Contains(string(r.Body), "socle_link") {
		t.Errorf("the response contains the token of the link: %s", r.Body)
	}

	a.Post(path, invitationBody("ANN@example.com", 5)).Want(409).Code("already_exists").Field("email")
	a.Post(path, invitationBody(viewer.Email, 5)).Want(409).Code("already_member").Field("email")
	admin.Post(path, invitationBody("bob@example.com", 2)).Want(403)
	admin.Post(path, invitationBody("bob@example.com", 3)).Want(201)
	viewer.Post(path, invitationBody("x@example.com", 5)).Want(403)
	a.OtherUser().Post(path, invitationBody("x@example.com", 5)).Want(404)

	for _, body := range []string{`{}`, invitationBody("", 5), invitationBody("x", 5), invitationBody("x@y@z", 5)} {
		a.Post(path, body).Want(422)
	}

	a.Post(path, invitationBody("x@example.com", 1)).Want(422).Field("role_id")
	a.Post(path, invitationBody("x@example.com", 6)).Want(422).Field("role_id")
	a.Post(path, `{`).Want(400)
	a.Post("/organizations/x/invitations", invitationBody("x@example.com", 5)).Want(400)

	if got := values(a.Get(path+"?sort=email").Want(200),
		"email"); fmt.Sprint(got) != "[Ann@example.com bob@example.com]" {
		t.Errorf("got %v", got)
	}

	a.Get(path + "?sort=token").Want(400)

	// The address of an expired invitation can be invited again.
	a.Exec(`update platform.invitations set expires_at = now() where email_folded = 'ann@example.com' and organization_uuid = $1`,
		a.Organization)
	repeated := a.Post(path, invitationBody("ann@example.com", 5)).Want(201).Get("uuid")
	a.Get(path+"?sort=email").Want(200).Content("0.uuid", repeated).Content("0.roleId", 5)

	got := concurrently(20, func(int) *apitest.Reply { return a.Post(path, invitationBody("carl@example.com", 5)) })
	wantCounts(t, got, map[int]int{201: 1, 409: 19})
}

func TestInvitationsAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.RateLimit = true })
	administrator := a.SignUp("first")
	path := "/organizations/" + administrator.Organization + "/invitations"
	administrator.Put("/admin/settings/members_per_organization", `{"value": 4}`).Want(200)

	got := concurrently(20, func(i int) *apitest.Reply {
		return administrator.Post(path, invitationBody(fmt.Sprintf("x%d@example.com", i), 5))
	})
	wantCounts(t, got, map[int]int{201: 3, 422: 17})
	administrator.Post(path, invitationBody("more@example.com", 5)).Want(422).Code("quota_exceeded")

	// An expired invitation gives its place to another one.
	late := administrator.Get(path).Want(200).Get("2.uuid").(string)
	a.Exec(`update platform.invitations set expires_at = now() where uuid = $1`, late)
	administrator.Post(path, invitationBody("more@example.com", 5)).Want(201)
	administrator.Post(path+"/"+late+"/resend", "").Want(422).Code("quota_exceeded")
	administrator.Delete(path + "/" + late).Want(200)

	id := administrator.Get(path).Want(200).Get("0.uuid").(string)
	for range 9 {
		administrator.Post(path+"/"+id+"/resend", "").Want(200)
	}

	administrator.Post(path+"/"+id+"/resend", "").Want(429).Code("rate_limited")
	email := administrator.Get(path).Want(200).Get("0.email").(string)
	administrator.Delete(path + "/" + id).Want(200)
	administrator.Post(path, invitationBody(email, 5)).Want(429).Code("rate_limited")
}

func TestAcceptInvitation(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/organizations/" + a.Organization + "/invitations"
	ann, bob := a.SignUp("Ann"), a.SignUp("bob")
	a.Post(path, invitationBody(strings.ToUpper(ann.Email), 4)).Want(201)

	token := waitForInvitation(t, a, strings.ToUpper(ann.Email))

	preview := "/invitations/preview?token=" + url.QueryEscape(token)
	a.Anonymous().Get(preview).Want(200).Content("email", strings.ToUpper(ann.Email)).Content("roleId", 4).
		Content("inviter", a.Get("/users/me").Get("username")).
		Content("organizationName", a.Get("/organizations/"+a.Organization).Get("name"))

	bob.Get(preview).Want(200) // anyone with the link
	a.Anonymous().Get("/invitations/preview").Want(400).Field("token")

	for _, bad := range []string{"", "x", "socle_link_x", token + "A", token[:len(token)-1]} {
		a.Anonymous().Get("/invitations/preview?token=" + url.QueryEscape(bad)).Want(404)
	}

	bob.Post("/invitations/accept", acceptBody(token)).Want(403).Code("other_address")
	ann.Get("/organizations/" + a.Organization).Want(404)

	got := concurrently(20, func(int) *apitest.Reply { return ann.Post("/invitations/accept", acceptBody(token)) })
	wantCounts(t, got, map[int]int{201: 1, 422: 19})
	ann.Get("/organizations/"+a.Organization).Want(200).Content("roleId", 4)
	ann.Get(preview).Want(404)
	ann.WithProject(a.Project).CreateTable("mine")

	if got := apitest.Value[int](a, `select count(*) from platform.members where user_uuid = $1`, ann.User); got != 2 {
		t.Errorf("got %d memberships, want 2", got)
	}
	if got := values(a.Get(path).Want(200), "uuid"); len(got) != 0 {
		t.Errorf("got invitations %v, want none", got)
	}

	for _, bad := range []string{"", "x", "socle_link_x", token, token + "A", token[:len(token)-1]} {
		ann.Post("/invitations/accept", acceptBody(bad)).Want(422).Code("invalid_token").Field("token")
	}

	ann.Post("/invitations/accept", `{}`).Want(422).Field("token")
	ann.Post("/invitations/accept", `{`).Want(400)
	a.Anonymous().Post("/invitations/accept", acceptBody(token)).Want(401)
}

// TestInvalidInvitations covers invitations that are revoked, resent, expired, or created by a
// user who has lost the right to invite.
func TestInvalidInvitations(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	organization := "/organizations/" + a.Organization
	path := organization + "/invitations"
	admin, second := a.Member(3), a.Member(3)
	for name, end := range map[string]func(id string){
		"deleted": func(id string) { a.Delete(path+"/"+id).Want(200).Content("uuid", id) },
		"expired": func(id string) {
			a.Exec(`update platform.invitations set expires_at = now() where uuid = $1`, id)
		},
		"link expired": func(id string) {
			a.Exec(`update platform.links set expires_at = now() where subject_uuid = $1`, id)
		},
		"lowered": func(string) { a.Put(organization+"/members/"+admin.User, role(4)).Want(200) },
		"removed": func(string) { a.Delete(organization + "/members/" + second.User).Want(200) },
	} {
		invitee := a.SignUp("guest")
		host := map[string]*apitest.API{"lowered": admin, "removed": second}[name]
		if host == nil {
			host = a
		}

		id := host.Post(path, invitationBody(invitee.Email, 5)).Want(201).Get("uuid").(string)
		token := waitForInvitation(t, a, invitee.Email)
		end(id)
		a.Anonymous().Get("/invitations/preview?token=" + url.QueryEscape(token)).Want(404)

		if r := invitee.Post("/invitations/accept", acceptBody(token)); r.Status != 422 {
			t.Errorf("%s: got %d %s", name, r.Status, r.Body)
		}

		invitee.Get(organization).Want(404)
	}

	invitee := a.SignUp("guest")
	id := a.Post(path, invitationBody(invitee.Email, 2)).Want(201).Get("uuid").(string)
	token := waitForInvitation(t, a, invitee.Email)
	a.Member(3).Post(path+"/"+id+"/resend", "").Want(403) // an owner's invitation
	a.Member(3).Delete(path + "/" + id).Want(403)
	a.Post(path+"/"+id+"/resend", "").Want(200).Content("uuid", id)
	invitee.Post("/invitations/accept", acceptBody(token)).Want(422)
	invitee.Post("/invitations/accept", acceptBody(waitForNextInvitation(t, a, invitee.Email, 1))).Want(201).
		Content("roleId", 2)
	a.Post(path+"/"+id+"/resend", "").Want(404)
	a.Delete(path + "/" + id).Want(404)
	late := "late-" + a.Email
	id = a.Post(path, invitationBody(late, 5)).Want(201).Get("uuid").(string)
	a.Exec(`update platform.users set email_folded = $1 where uuid = $2`, late, invitee.User)
	a.Post(path+"/"+id+"/resend", "").Want(409).Code("already_member").Field("email")
	a.Delete(path + "/x").Want(400)
	a.Post(path+"/x/resend", "").Want(400)
	a.Get("/organizations/x/invitations").Want(400)

	// Either the acceptance or the concurrent deletion succeeds.
	for range 5 {
		invitee := a.SignUp("guest")
		id := a.Post(path, invitationBody(invitee.Email, 5)).Want(201).Get("uuid").(string)
		token := waitForInvitation(t, a, invitee.Email)

		got := concurrently(2, func(i int) *apitest.Reply {
			if i == 0 {
				return a.Delete(path + "/" + id)
			}
			return invitee.Post("/invitations/accept", acceptBody(token))
		})
		if got[200]+got[201] != 1 {
			t.Errorf("got statuses %v, want one success", got)
		}
	}
}

// TestSignUpByInvitation checks that an invitation allows sign-up with the invited address while
// sign-up is off.
func TestSignUpByInvitation(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.SignUp = false })
	administrator := a.SignUp("first")
	path := "/organizations/" + administrator.Organization + "/invitations"
	administrator.Post(path, invitationBody("guest@example.com", 4)).Want(201)
	token := waitForInvitation(t, a, "guest@example.com")
	with := func(name, email, token string) string {
		return userBody(name, map[string]any{"email": email, "invitation_token": token})
	}

	a.Post("/users", with("guest", "other@example.com", token)).Want(400).Code("other_address").Field("email")
	a.Post("/users", with("guest", "guest@example.com", "x")).Want(400).Code("invalid_token").Field("invitation_token")
	a.Post("/users", with("guest", "guest@example.com", "")).Want(400).Code("sign_up_closed")

	// The failed requests have not used up the link.
	a.Post("/users", with("!", "guest@example.com", token)).Want(400).Field("username")

	var fresh string
	got := concurrently(8, func(i int) *apitest.Reply {
		r := a.Post("/users", with(fmt.Sprintf("guest%d", i), "Guest@example.com", token))
		if r.Status == 201 {
			fresh = r.Metadata("token").(string)
		}

		return r
	})

	wantCounts(t, got, map[int]int{201: 1, 400: 7})
	invitee := a.Anonymous()
	invitee.Token = fresh
	invitee.Get("/organizations/"+administrator.Organization).Want(200).Content("roleId", 4)

	if got := values(invitee.Get("/organizations").Want(200), "roleId"); len(got) != 2 { // one is their own
		t.Errorf("got roles %v, want 2", got)
	}

	a.Post("/users", with("late", "guest@example.com", token)).Want(400).Code("invalid_token").Field("invitation_token")
}
