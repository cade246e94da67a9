package web

import (
	"context"
	"fmt"
	"net/url"

	"github.com/socle-dev/socle/internal/account"
)

// showRecipient returns the page that asks to confirm an address for mails about responses.
func (p *Pages) showRecipient(ctx context.Context, linkToken string) (page, error) {
	r, err := p.Submissions.PreviewRecipient(ctx, linkToken)
	if err != nil {
		return page{}, err
	}

	return page{
		Title: "Get mails about new responses?",
		Text:  []string{fmt.Sprintf("New responses to the form %s are mailed to %s.", r.Form.Name, r.Email)},
		Form:  &form{Action: "/confirm-recipient", Button: "Confirm", Hidden: []hidden{{"token", linkToken}}},
	}, nil
}

// confirmRecipient confirms an address for mails about responses.
func (p *Pages) confirmRecipient(ctx context.Context, _ account.Client, in url.Values) (page, error) {
	r, err := p.Submissions.ConfirmRecipient(ctx, in.Get("token"))
	if err != nil {
		return page{}, err
	}

	return page{
		Title: "Your address is confirmed",
		Text: []string{fmt.Sprintf("%s gets mails about new responses to %s, and to other forms of the same project that "+
			"name it.", r.Email, r.Form.Name)},
	}, nil
}
