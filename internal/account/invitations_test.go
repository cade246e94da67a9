package account

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// invite invites an address and returns the token of its mail.
func (i *install) invite(by User, email string, role Role) (Invited, string) {
	i.t.Helper()

	inv, err := i.CreateInvitation(i.t.Context(), actor(by), at("home"), by.OrganizationUUID, email, role)
	if err != nil {
		i.t.Fatal(err)
	}

	return inv, i.linkToken(i.takeMail(), Invitation)
}

// TestCreateInvitation checks who is invited to which role, and the limits.
func TestCreateInvitation(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	i.join(ada.OrganizationUUID, bob, Admin)
	invite := func(by User, email string, role Role) error {
		_, err := i.CreateInvitation(t.Context(), actor(by), at("home"), ada.OrganizationUUID, email, role)
		return err
	}

	want(t, invite(bob, "ann@example.com", Owner), fault.Forbidden, "forbidden")
	want(t, invite(i.user("stranger"), "ann@example.com", Viewer), fault.NotFound, "not_found")
	want(t, invite(ada, "nobody", Viewer), fault.Unprocessable, "invalid_format")
	want(t, invite(ada, "BOB@example.com", Viewer), fault.Conflict, "already_member")
	want(t, invite(ada, "ann@example.com", Owner), 0, "")
	m := i.takeMail()
	if m.Template != "invitation" || m.Data["role"] != "owner" || m.Data["inviter"] != "ada" {
		t.Errorf("got mail %v, want the invitation of ada to be owner", m)
	}
	want(t, invite(ada, "Ann@example.com", Viewer), fault.Conflict, "already_exists")

	i.exec(`update platform.invitations set expires_at = now()`)
	want(t, invite(ada, "ann@example.com", Viewer), 0, "")

	i.exec(`insert into platform.settings (name, value, updated_by) values ('members_per_organization', '3', gen_random_uuid())`)
	want(t, invite(ada, "eve@example.com", Viewer), fault.Unprocessable, "quota_exceeded")
}

// TestResendInvitation checks that an expired invitation, which takes no place of a member, is sent
// again only if there is room for it and its address is not a member yet.
func TestResendInvitation(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	i.exec(`insert into platform.settings (name, value, updated_by) values ('members_per_organization', '3', gen_random_uuid())`)

	ada, bob := i.user("ada"), i.user("bob")
	expired, _ := i.invite(ada, "ann@example.com", Viewer)
	i.invite(ada, "eve@example.com", Viewer)
	i.exec(`update platform.invitations set expires_at = now() where uuid = $1`, expired.UUID)
	resend := func() error {
		_, err := i.ResendInvitation(t.Context(), actor(ada), at("home"), ada.OrganizationUUID, expired.UUID)
		return err
	}

	want(t, resend(), 0, "")
	i.exec(`update platform.invitations set expires_at = now() where uuid = $1`, expired.UUID)
	i.join(ada.OrganizationUUID, bob, Viewer)
	want(t, resend(), fault.Unprocessable, "quota_exceeded")

	i.exec(`update platform.users set email_folded = 'ann@example.com' where uuid = $1`, bob.UUID)
	want(t, resend(), fault.Conflict, "already_member")
}

// TestInvitationLimit checks that an address gets a limited number of unsolicited mails.
func TestInvitationLimit(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	inv, _ := i.invite(ada, "ann@example.com", Viewer)
	resend := func() error {
		_, err := i.ResendInvitation(t.Context(), actor(ada), at("home"), ada.OrganizationUUID, inv.UUID)
		return err
	}

	for range invitationRecipientLimit.Most - 1 {
		want(t, resend(), 0, "")
	}
	want(t, resend(), fault.TooMany, "rate_limited")
}

// TestAcceptInvitation checks that a link makes its recipient a member once, and nobody else.
func TestAcceptInvitation(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, ann, eve := i.user("ada"), i.user("ann"), i.user("eve")
	inv, former := i.invite(ada, "ANN@example.com", Developer)
	if _, err := i.ResendInvitation(t.Context(), actor(ada), at("home"), ada.OrganizationUUID, inv.UUID); err != nil {
		t.Fatal(err)
	}

	token := i.linkToken(i.takeMail(), Invitation)
	preview, err := i.PreviewInvitation(t.Context(), token)
	if err != nil || preview.OrganizationName != "ada" || preview.RoleID != Developer {
		t.Errorf("got preview %v, %v, want the organization of ada as developer", preview, err)
	}

	accept := func(u User, token string) error {
		_, err := i.AcceptInvitation(t.Context(), u.UUID, token)
		return err
	}
	want(t, accept(ann, former), fault.Unprocessable, "invalid_token") // a later mail voids it
	want(t, accept(ann, "forged"), fault.Unprocessable, "invalid_token")
	want(t, accept(eve, token), fault.Forbidden, "other_address")
	want(t, accept(ann, token), 0, "")
	want(t, accept(ann, token), fault.Unprocessable, "invalid_token")
	if m, err := i.GetMember(t.Context(), ada.OrganizationUUID, ann.UUID); err != nil || m.RoleID != Developer {
		t.Errorf("got role %s, %v, want %s", m.RoleID, err, Developer)
	}

	for _, text := range []string{token, "forged"} {
		_, err := i.PreviewInvitation(t.Context(), text)
		want(t, err, fault.NotFound, "not_found")
	}
}

// TestSignUpByInvitation checks that an invited address signs up while sign-up is closed.
func TestSignUpByInvitation(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	_, token := i.invite(ada, "ann@example.com", Viewer)
	i.closeSignUp()
	signUp := func(email, token string) error {
		_, err := i.signUp(Caller{}, at("home"),
			SignUp{Username: "ann", Email: email, Password: secret, InvitationToken: token})
		return err
	}

	want(t, signUp("ann@example.com", ""), fault.Invalid, "sign_up_closed")
	want(t, signUp("ann@example.com", "forged"), fault.Unprocessable, "invalid_token")
	want(t, signUp("eve@example.com", token), fault.Unprocessable, "other_address")
	want(t, signUp("Ann@example.com", token), 0, "")
	want(t, signUp("ann@example.com", token), fault.Unprocessable, "invalid_token")
	if n := i.exec(`select from platform.members where organization_uuid = $1`, ada.OrganizationUUID); n != 2 {
		t.Errorf("got %d members, want 2", n)
	}
}

// TestDeleteInvitation checks that a withdrawn invitation's link is void, and that an invitation
// above one's own role cannot be withdrawn.
func TestDeleteInvitation(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob, ann := i.user("ada"), i.user("bob"), i.user("ann")
	i.join(ada.OrganizationUUID, bob, Admin)
	inv, token := i.invite(ada, ann.Email, Owner)
	remove := func(by User) error {
		_, err := i.DeleteInvitation(t.Context(), ada.OrganizationUUID, actor(by), inv.UUID)
		return err
	}

	want(t, remove(bob), fault.Forbidden, "forbidden")
	want(t, remove(ada), 0, "")
	want(t, remove(ada), fault.NotFound, "not_found")
	_, err := i.AcceptInvitation(t.Context(), ann.UUID, token)
	want(t, err, fault.Unprocessable, "invalid_token")
}

// TestInvitationsOfLostRights checks that an invitation is void as soon as its inviter could no
// longer send it, in whatever way the inviter lost the right.
func TestInvitationsOfLostRights(t *testing.T) {
	t.Parallel()

	suspended, demoted := "suspended", false
	cases := map[string]struct {
		role Role // of the inviter in the organization; 0: none, an administrator of the install
		lose func(i *install, home uuid.UUID, inviter User) error
		kept bool
	}{
		"removed member": {role: Admin, lose: func(i *install, home uuid.UUID, inviter User) error {
			return i.deleteMember(i.t.Context(), home, inviter.UUID)
		}},
		"member with a lower role": {role: Admin, lose: func(i *install, home uuid.UUID, inviter User) error {
			return i.setRole(i.t.Context(), home, inviter.UUID, Developer)
		}},
		"member with the invited role": {role: Owner, lose: func(i *install, home uuid.UUID, inviter User) error {
			return i.setRole(i.t.Context(), home, inviter.UUID, Admin)
		}, kept: true},
		"deleted user": {role: Admin, lose: func(i *install, _ uuid.UUID, inviter User) error {
			_, err := i.deleteUser(i.t.Context(), inviter.UUID)
			return err
		}},
		"suspended user": {role: Admin, lose: func(i *install, _ uuid.UUID, inviter User) error {
			_, err := i.UpdateStanding(i.t.Context(), inviter.UUID, Standing{Status: &suspended})
			return err
		}},
		"former administrator": {lose: func(i *install, _ uuid.UUID, inviter User) error {
			_, err := i.UpdateStanding(i.t.Context(), inviter.UUID, Standing{IsAdministrator: &demoted})
			return err
		}},
		"removed administrator": {role: Admin, lose: func(i *install, home uuid.UUID, inviter User) error {
			i.exec(`update platform.users set is_administrator = true where uuid = $1`, inviter.UUID)
			return i.deleteMember(i.t.Context(), home, inviter.UUID)
		}, kept: true},
		"former administrator, member": {role: Admin, lose: func(i *install, _ uuid.UUID, inviter User) error {
			i.exec(`update platform.users set is_administrator = true where uuid = $1`, inviter.UUID)
			_, err := i.UpdateStanding(i.t.Context(), inviter.UUID, Standing{IsAdministrator: &demoted})
			return err
		}, kept: true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			i := newInstall(t)
			ada, bob, ann := i.user("ada"), i.user("bob"), i.user("ann")
			i.exec(`update platform.users set is_administrator = true where uuid = $1`, ada.UUID)
			if test.role == 0 {
				i.exec(`update platform.users set is_administrator = true where uuid = $1`, bob.UUID)
			} else {
				i.join(ada.OrganizationUUID, bob, test.role)
			}

			if _, err := i.CreateInvitation(t.Context(), actor(bob), at("home"), ada.OrganizationUUID, ann.Email,
				Admin); err != nil {
				t.Fatal(err)
			}

			link := i.linkToken(i.takeMail(), Invitation)
			if err := test.lose(i, ada.OrganizationUUID, bob); err != nil {
				t.Fatal(err)
			}

			_, err := i.AcceptInvitation(t.Context(), ann.UUID, link)
			if test.kept {
				want(t, err, 0, "")
			} else {
				want(t, err, fault.Unprocessable, "invalid_token")
			}
		})
	}
}
