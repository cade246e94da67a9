package authapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// adminUser is a new or changed user's body.
type adminUser struct {
	ID           string          `json:"id"`
	Email        *string         `json:"email"`
	Phone        *string         `json:"phone"`
	Password     *string         `json:"password"`
	PasswordHash *string         `json:"password_hash"`
	Role         *string         `json:"role"`
	EmailConfirm *bool           `json:"email_confirm"`
	PhoneConfirm *bool           `json:"phone_confirm"`
	UserMetadata json.RawMessage `json:"user_metadata"`
	AppMetadata  json.RawMessage `json:"app_metadata"`
	BanDuration  *string         `json:"ban_duration"`
}

func (c *call) adminUser() (enduser.AdminUpdate, error) {
	var in adminUser
	if err := c.decode(&in); err != nil {
		return enduser.AdminUpdate{}, err
	}

	id, err := uuidIn("id", in.ID)
	if err != nil {
		return enduser.AdminUpdate{}, err
	}

	return enduser.AdminUpdate{ID: id, Email: in.Email, Phone: in.Phone, Password: in.Password,
		PasswordHash: in.PasswordHash, Role: in.Role, EmailConfirm: in.EmailConfirm, PhoneConfirm: in.PhoneConfirm,
		UserMetadata: in.UserMetadata, AppMetadata: in.AppMetadata,
		BanDuration: in.BanDuration}, nil
}

const (
	defaultPerPage = 50
	maxPerPage     = 1000
)

// pageOf returns the list page that a request asks for.
func (c *call) pageOf() (page, perPage int, err error) {
	q := c.r.URL.Query()
	page, perPage = 1, defaultPerPage
	for name, to := range map[string]*int{"page": &page, "per_page": &perPage} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 1_000_000_000 {
				return 0, 0, fault.New(fault.Invalid, "Bad Pagination Parameters: %s", name).
					WithCode("validation_failed")
			}
			*to = n
		}
	}

	return page, min(perPage, maxPerPage), nil
}

// setPage tells the total count and the other pages in headers.
func (c *call) setPage(path string, page, perPage int, total int64) {
	last := max(int((total+int64(perPage)-1)/int64(perPage)), 1)
	link := func(page int, rel string) string {
		return fmt.Sprintf(`<%s?page=%d&per_page=%d>; rel="%s"`, path, page, perPage, rel)
	}

	h := c.w.Header()
	h.Set("X-Total-Count", strconv.FormatInt(total, 10))
	if page < last {
		h.Set("Link", link(page+1, "next")+", "+link(last, "last"))
	} else {
		h.Set("Link", link(last, "last"))
	}
}

func (c *call) listUsers([]uuid.UUID) error {
	page, perPage, err := c.pageOf()
	if err != nil {
		return err
	}

	users, total, err := c.ListUsers(c.r.Context(), enduser.Filter{Search: c.r.URL.Query().Get("filter")},
		pg.Page{Number: page, Limit: perPage, Sort: "createdAt", Descending: true})
	if err != nil {
		return err
	}

	c.setPage("/admin/users", page, perPage, total)
	return c.respond(http.StatusOK, map[string]any{"users": users, "aud": "authenticated"})
}

func (c *call) createUser([]uuid.UUID) error {
	in, err := c.adminUser()
	if err != nil {
		return err
	}

	u, err := c.CreateUser(c.r.Context(), in, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) adminGetUser(ids []uuid.UUID) error {
	u, err := c.GetUser(c.r.Context(), ids[0])
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) adminUpdateUser(ids []uuid.UUID) error {
	in, err := c.adminUser()
	if err != nil {
		return err
	}

	u, err := c.UpdateUser(c.r.Context(), ids[0], in, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) deleteUser(ids []uuid.UUID) error {
	var in struct {
		Soft bool `json:"should_soft_delete"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if _, err := c.DeleteUser(c.r.Context(), ids[0], in.Soft, c.client); err != nil {
		return err
	}

	return c.empty()
}

func (c *call) listFactors(ids []uuid.UUID) error {
	factors, err := c.ListFactors(c.r.Context(), ids[0])
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, factors)
}

func (c *call) deleteFactor(ids []uuid.UUID) error {
	f, err := c.DeleteFactor(c.r.Context(), ids[0], ids[1], c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, f)
}

func (c *call) invite([]uuid.UUID) error {
	var in struct {
		Email string
		Data  json.RawMessage
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	u, err := c.Invite(c.r.Context(), in.Email, in.Data, c.redirectTo(), c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, u)
}

func (c *call) generateLink([]uuid.UUID) error {
	var in struct {
		Type, Email, Password string
		NewEmail              string `json:"new_email"`
		Data                  json.RawMessage
		RedirectTo            string `json:"redirect_to"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	if in.RedirectTo == "" {
		in.RedirectTo = c.redirectTo()
	}

	link, err := c.GenerateLink(c.r.Context(), enduser.NewLink{Type: in.Type, Email: in.Email, NewEmail: in.NewEmail,
		Password: in.Password, Data: in.Data, RedirectTo: in.RedirectTo}, c.client)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, link)
}
