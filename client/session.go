package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Session is a log-in: an access token and the refresh token that renews it.
type Session struct {
	Token            string    `json:"token"`
	ExpiresAt        time.Time `json:"expiresAt"`
	RefreshToken     string    `json:"refreshToken"`
	RefreshExpiresAt time.Time `json:"refreshExpiresAt"`
}

// Login opens a session with an e-mail address and a password. The client uses its access token
// from then on. code is the code of the second factor, "" without one.
func (c *Client) Login(ctx context.Context, email, password, code string) (Session, error) {
	body := map[string]string{"email": email, "password": password}
	if code != "" {
		body["code"] = code
	}

	return c.session(ctx, "/users/login", body)
}

// Refresh renews a session. It uses up the refresh token.
func (c *Client) Refresh(ctx context.Context, refreshToken string) (Session, error) {
	return c.session(ctx, "/users/refresh", map[string]string{"refresh_token": refreshToken})
}

func (c *Client) session(ctx context.Context, path string, body any) (Session, error) {
	anonymous := *c
	anonymous.Token, anonymous.Project = "", ""

	// One attempt only: a refresh token is single-use.
	reply, err := anonymous.do(ctx, Request{Method: http.MethodPost, Path: path, Body: body}, 1)
	if err != nil {
		return Session{}, err
	}

	var s Session
	if err := json.Unmarshal(reply.Metadata, &s); err != nil {
		return Session{}, fmt.Errorf("decode the session: %w", err)
	}

	c.Token = s.Token
	return s, nil
}
