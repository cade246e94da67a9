package outbound

import (
	"errors"
	"net/url"
)

// CheckURL fails unless text is an address that a tenant may choose: by HTTPS, or by HTTP in a
// network that [New] allows, without user, query and fragment.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New("must be a URL without user, query and fragment")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must begin with https://")
	}

	return nil
}
