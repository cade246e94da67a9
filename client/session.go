package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Session is a log-in: a token that is good for a while, and one that gets the next.
type Session struct {
	Token            string    `json:"token"`
	ExpiresAt        time.Time `json:"expiresAt"`
	RefreshToken     string    `json:"refreshToken"`
	RefreshExpiresAt time.Time `json:"refreshExpiresAt"`
}

// Login opens a session with a user's e-mail address and password, and the client uses its token from then on. code is that of the
// second factor, "" for a user without one.
func (c *Client) Login(ctx context.Context, email, password, code string) (Session, error) {
	body := map[string]string{"email": email, "password": password}
	if code != "" {
		body["code"] = code
	}

	return c.session(ctx, "/users/login", body)
}

// Refresh goes on with a session after its token has expired. The refresh token is spent by it.
func (c *Client) Refresh(ctx context.Context, refreshToken string) (Session, error) {
	return c.session(ctx, "/users/refresh", map[string]string{"refresh_token": refreshToken})
}

func (c *Client) session(ctx context.Context, path string, body any) (Session, error) {
	nobody := *c
	nobody.Token, nobody.Project = "", ""

	// a refresh token is good for one
	reply, err := nobody.do(ctx, Request{Method: http.MethodPost, Path: path, Body: body}, 1)
	if err != nil {
		return Session{}, err
	}

	var s Session
	if err := json.Unmarshal(reply.Metadata, &s); err != nil {
		return Session{}, fmt.Errorf("read the session: %w", err)
	}

	c.Token = s.Token
	return s, nil
}
