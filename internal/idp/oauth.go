package idp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/socle-dev/socle/internal/fair"
)

// tokens is a token endpoint's response.
type tokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	IDToken      string `json:"id_token"`
	Error        string `json:"error"`
}

// token exchanges a code.
func (c *Client) token(
	ctx context.Context, tenant fair.Key, config Config, p provider, f Flow, code string,
) (tokens, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.RedirectURI}}
	if p.pkce {
		form.Set("code_verifier", f.Verifier)
	}
	if !p.basicAuth {
		form.Set("client_id", config.ClientID)
		form.Set("client_secret", config.Secret)
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.tokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return tokens{}, errors.Join(ErrProvider, err)
	}

	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if p.basicAuth {
		r.SetBasicAuth(url.QueryEscape(config.ClientID), url.QueryEscape(config.Secret))
	}

	res, err := c.out.Do(ctx, tenant, r)
	if err != nil {
		return tokens{}, errors.Join(ErrProvider, err)
	}

	var t tokens
	err = json.Unmarshal(res.Body, &t)
	switch {
	case errorCode.MatchString(t.Error):
		return t, &RefusedError{t.Error}
	case err != nil, res.Status != http.StatusOK, t.AccessToken == "":
		return t, errors.Join(ErrProvider, fmt.Errorf("token endpoint: status %d", res.Status))
	case len(t.AccessToken) > maxToken, len(t.RefreshToken) > maxToken:
		return t, errors.Join(ErrProvider, errors.New("token endpoint: a large token"))
	}

	return t, nil
}

// errorCode matches failure codes, which are words.
var errorCode = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,60}$`)

// get returns a document with status 200. token authenticates the request, unless "".
func (c *Client) get(ctx context.Context, tenant fair.Key, address, token string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.Join(ErrProvider, err)
	}

	r.Header.Set("Accept", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}

	res, err := c.out.Do(ctx, tenant, r)
	if err != nil {
		return nil, errors.Join(ErrProvider, err)
	}
	if res.Status != http.StatusOK {
		return nil, errors.Join(ErrProvider, fmt.Errorf("%s: status %d", r.URL.Path, res.Status))
	}

	return res.Body, nil
}

func (c *Client) getJSON(ctx context.Context, tenant fair.Key, address, token string, to any) error {
	text, err := c.get(ctx, tenant, address, token)
	if err != nil {
		return err
	}

	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber() // ids have up to 64 bits
	if err := d.Decode(to); err != nil {
		return errors.Join(ErrProvider, err)
	}

	return nil
}

// api is the interface to a provider without ID tokens, with a person's access token.
type api struct {
	root, token, secret string
	get                 func(path string, to any) error // decodes a document below root
}

// profile has a profile's members by their meaning. Empty ones are unknown.
type profile struct {
	Issuer, Subject, Email  string
	Verified                bool // the address
	Name, UserName, Picture string
}

// identity returns the person with the profile by the names that clients know.
func (p profile) identity() Identity {
	emailVerified := p.Verified && p.Email != ""
	data := map[string]any{"sub": p.Subject, "provider_id": p.Subject, "email_verified": emailVerified,
		"phone_verified": false}
	for name, value := range map[string]string{"iss": p.Issuer, "email": p.Email, "name": p.Name, "full_name": p.Name,
		"user_name": p.UserName, "preferred_username": p.UserName, "avatar_url": p.Picture, "picture": p.Picture} {
		if value != "" {
			data[name] = value
		}
	}

	return Identity{Subject: p.Subject, Email: p.Email, EmailVerified: emailVerified, Data: data}
}

func github(a api) (Identity, error) {
	var u claims
	if err := a.get("/user", &u); err != nil {
		return Identity{}, err
	}

	var addresses []struct {
		Email             string
		Primary, Verified bool
	}
	if err := a.get("/user/emails", &addresses); err != nil {
		return Identity{}, err
	}

	p := profile{Issuer: a.root, Subject: u.text("id"), Name: u.text("name"), UserName: u.text("login"),
		Picture: u.text("avatar_url")}
	for _, address := range addresses {
		if address.Primary {
			p.Email, p.Verified = claims{"email": address.Email}.text("email"), address.Verified
		}
	}

	return p.identity(), nil
}

func gitlab(a api) (Identity, error) {
	var u claims
	if err := a.get("/user", &u); err != nil {
		return Identity{}, err
	}

	return profile{Issuer: a.root, Subject: u.text("id"), Email: u.text("email"),
		Verified: u.text("confirmed_at") != "", Name: u.text("name"), UserName: u.text("username"),
		Picture: u.text("avatar_url")}.identity(), nil
}

func discord(a api) (Identity, error) {
	var u claims
	if err := a.get("/users/@me", &u); err != nil {
		return Identity{}, err
	}

	p := profile{Issuer: a.root, Subject: u.text("id"), Email: u.text("email"), Verified: u.isTrue("verified"),
		Name: u.text("global_name"), UserName: u.text("username")}
	if p.Name == "" {
		p.Name = p.UserName
	}
	if avatar := u.text("avatar"); avatar != "" {
		p.Picture = "https://cdn.discordapp.com/avatars/" +
			url.PathEscape(p.Subject) + "/" + url.PathEscape(avatar) + ".png"
	}

	return p.identity(), nil
}

// facebook shows confirmed addresses only, and wants a proof that the caller has the secret.
func facebook(a api) (Identity, error) {
	proof := hmac.New(sha256.New, []byte(a.secret))
	proof.Write([]byte(a.token))

	var u struct {
		ID, Name, Email string
		Picture         struct{ Data struct{ URL string } }
	}
	path := "/me?fields=id,name,email,picture&appsecret_proof=" + hex.EncodeToString(proof.Sum(nil))
	if err := a.get(path, &u); err != nil {
		return Identity{}, err
	}

	members := claims{"id": u.ID, "name": u.Name, "email": u.Email, "picture": u.Picture.Data.URL}
	return profile{Issuer: a.root, Subject: members.text("id"), Email: members.text("email"), Verified: true,
		Name: members.text("name"), Picture: members.text("picture")}.identity(), nil
}
