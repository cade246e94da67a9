package web

import (
	"context"
	"fmt"
	"net/url"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
)

// linkPages returns the pages about accounts.
func (p *Pages) linkPages() []*linkPage {
	return []*linkPage{
		{
			Pages: p, path: "/accept-invitation", action: "acceptInvitation",
			show: p.showInvitation, submit: p.acceptInvitation,
			invalid: page{Title: "The invitation is no longer valid",
				Text: []string{invalidLink, "Ask the person who invited you to send the invitation again."}},
		},
		{
			Pages: p, path: "/reset-password", action: "resetPassword",
			show: p.showReset, submit: p.resetPassword,
			invalid: page{Title: "The link is no longer valid", Text: []string{invalidLink},
				Links: []link{{"/forgot-password", "Request another link", "it works for an hour"}}},
		},
		{
			Pages: p, path: "/confirm-email", action: "confirmEmail",
			show: p.showConfirmation, submit: p.confirmEmail,
			invalid: page{Title: "The link is no longer valid",
				Text: []string{invalidLink, "Your address has not changed. Request the change again to get another link."}},
		},
		{
			Pages: p, path: "/forgot-password", action: "forgetPassword",
			show: showForgotten, submit: p.forgetPassword,
		},
		{
			Pages: p, path: "/confirm-recipient", action: "confirmRecipient",
			show: p.showRecipient, submit: p.confirmRecipient,
			invalid: page{Title: "The link is no longer valid",
				Text: []string{invalidLink, "You get no mails because of it."}},
		},
	}
}

const invalidLink = "Its link is incomplete, has expired, or was already used."

// showInvitation returns an invitation's page. The user of an existing account logs in, anyone else
// signs up.
func (p *Pages) showInvitation(ctx context.Context, linkToken string) (page, error) {
	i, err := p.Accounts.PreviewInvitation(ctx, linkToken)
	if err != nil {
		return page{}, err
	}

	inviter := i.Inviter
	if inviter == "" {
		inviter = "A former member"
	}

	expires := i.ExpiresAt.UTC().Format("2 January 2006 15:04 UTC")
	view := page{
		Title: "Join " + i.OrganizationName,
		Text: []string{fmt.Sprintf("%s invites you to join %s as %s. The invitation is valid until %s.",
			inviter, i.OrganizationName, i.RoleID, expires)},
		Form: &form{Action: "/accept-invitation", Button: "Log in and join",
			Hidden: []hidden{{"token", linkToken}}},
	}

	email := input{Name: "email", Label: "E-mail address", Type: "email", Value: i.Email, ReadOnly: true,
		Autocomplete: "username"}
	password := input{Name: "password", Label: "Password", Type: "password", Required: true,
		Autocomplete: "current-password"}
	if i.HasAccount {
		view.Text = append(view.Text, "This address has an account. Log in to accept.")
		view.Form.Inputs = []input{email, password, {Name: "code", Label: "Code of your second factor", Type: "text",
			Help:         "Only if you have set one up: six digits from the app, or a recovery code.",
			Autocomplete: "one-time-code"}}

		return view, nil
	}

	view.Text = append(view.Text, "Create your account to accept.")
	view.Form.Hidden = append(view.Form.Hidden, hidden{"new", "true"})
	view.Form.Button = "Create account and join"
	password.Autocomplete = "new-password"
	password.Help = p.Accounts.Passwords.Rule()
	view.Form.Inputs = []input{email, {Name: "username", Label: "User name", Type: "text", Required: true,
		Help: "3 to 100 letters, digits, _ or -.", Autocomplete: "nickname"}, password}

	return view, nil
}

// acceptInvitation accepts an invitation by log-in or by sign-up.
func (p *Pages) acceptInvitation(ctx context.Context, c account.Client, in url.Values) (page, error) {
	i, err := p.Accounts.PreviewInvitation(ctx, in.Get("token"))
	if err != nil {
		return page{}, err
	}

	if in.Get("new") != "" {
		err = p.Accounts.AcceptBySignUp(ctx, c, account.SignUp{Username: in.Get("username"), Email: in.Get("email"),
			Password: in.Get("password"), InvitationToken: in.Get("token")})
	} else {
		_, err = p.Accounts.AcceptByLogin(ctx, c, account.Credentials{Email: in.Get("email"),
			Password: in.Get("password"), Code: in.Get("code")}, in.Get("token"))
	}
	if err != nil {
		return page{}, err
	}

	return page{
		Title: "Welcome to " + i.OrganizationName,
		Text: []string{fmt.Sprintf("You are now a member of %s.", i.OrganizationName),
			"On the command line, continue with: socle login --url " + p.PublicURL},
		Links: []link{consoleLink, commandLineLink, startLink},
	}, nil
}

var (
	startLink  = link{"/", "Start page", "the reference of the API, and guides"}
	startLinks = []link{consoleLink, startLink}
)

// showReset returns the page that asks for a new password.
func (p *Pages) showReset(ctx context.Context, linkToken string) (page, error) {
	l, err := p.Accounts.PreviewLink(ctx, account.PasswordReset, linkToken)
	if err != nil {
		return page{}, err
	}

	return page{
		Title: "Set a new password",
		Text:  []string{"It ends all sessions of the account."},
		Form: &form{Action: "/reset-password", Button: "Set password", Hidden: []hidden{{"token", linkToken}},
			Inputs: []input{
				{Name: "email", Label: "Account", Type: "email", Value: l.Email, ReadOnly: true,
					Autocomplete: "username"},
				{Name: "password", Label: "New password", Type: "password", Required: true,
					Help: p.Accounts.Passwords.Rule(), Autocomplete: "new-password"},
			}},
	}, nil
}

func (p *Pages) resetPassword(ctx context.Context, c account.Client, in url.Values) (page, error) {
	return page{
		Title: "Your password is set",
		Text:  []string{"All sessions of the account have ended. Log in with the new password."},
		Links: startLinks,
	}, p.Accounts.ResetPassword(ctx, c, in.Get("token"), in.Get("password"))
}

// showConfirmation returns the page that asks to confirm an address.
func (p *Pages) showConfirmation(ctx context.Context, linkToken string) (page, error) {
	l, err := p.Accounts.PreviewLink(ctx, account.EmailChange, linkToken)
	if err != nil {
		return page{}, err
	}

	return page{
		Title: "Confirm your address",
		Text:  []string{fmt.Sprintf("%s becomes the address of the account %s.", l.Email, l.Username)},
		Form:  &form{Action: "/confirm-email", Button: "Confirm", Hidden: []hidden{{"token", linkToken}}},
	}, nil
}

func (p *Pages) confirmEmail(ctx context.Context, c account.Client, in url.Values) (page, error) {
	email, err := p.Accounts.ConfirmEmail(ctx, c, in.Get("token"))
	if err != nil {
		return page{}, emailTaken(err)
	}

	return page{
		Title: "Your address is confirmed",
		Text:  []string{email + " is now the address of your account. Log in with it from now on."},
		Links: startLinks,
	}, nil
}

// emailTaken words an address Conflict for a page without an input for it.
func emailTaken(err error) error {
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	return fault.New(fault.Conflict, "the address belongs to another account").WithCause(err)
}

// showForgotten returns the page that asks for an account's address.
func showForgotten(context.Context, string) (page, error) {
	return page{
		Title: "Forgot your password?",
		Text:  []string{"We mail you a link to set a new one. It works for an hour."},
		Form: &form{Action: "/forgot-password", Button: "Send link", Inputs: []input{
			{Name: "email", Label: "E-mail address", Type: "email", Required: true, Autocomplete: "username"}}},
	}, nil
}

func (p *Pages) forgetPassword(ctx context.Context, c account.Client, in url.Values) (page, error) {
	return page{
		Title: "Check your mail",
		Text: []string{fmt.Sprintf("If %s has an account, a link to set a new password is on its way.", in.Get("email")),
			"No mail after some minutes? Look into the spam folder, or ask again."},
	}, p.Accounts.ForgetPassword(ctx, c, in.Get("email"))
}
