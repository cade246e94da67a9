package webhook

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
)

// clean checks the fields.
func (c *Change) clean() error {
	if c.Name != nil {
		name := strings.TrimSpace(*c.Name)
		if name == "" || len([]rune(name)) > maxName {
			return fault.OnField(fault.Unprocessable, "name", "invalid_length", "must have 1 to %d characters", maxName)
		}
		c.Name = &name
	}
	if c.URL != nil {
		if err := checkURL(*c.URL); err != nil {
			return err
		}
	}

	for _, t := range valueOf(c.Events) {
		if !event.IsFact(t) {
			return fault.OnField(fault.Unprocessable, "events", "invalid_value", "has the unknown type %q", t)
		}
	}
	if len(valueOf(c.Tables)) > maxTables {
		return fault.OnField(fault.Unprocessable, "tables", "too_many", "must have at most %d items", maxTables)
	}
	if err := checkQueues(valueOf(c.Queues)); err != nil {
		return err
	}
	for i := range valueOf(c.Tables) {
		(*c.Tables)[i].setDefaults()
	}

	return checkHeaders(valueOf(c.Headers))
}

// setDefaults sets the members that a request may omit.
func (t *WatchedTable) setDefaults() {
	if t.Schema == "" {
		t.Schema = "public"
	}
	if t.Event == "" {
		t.Event = event.Any
	}
}

// checkQueues checks the names of queues, which need not exist yet.
func checkQueues(names []string) error {
	if len(names) > maxQueues {
		return fault.OnField(fault.Unprocessable, "queues", "too_many", "must have at most %d items", maxQueues)
	}
	for i, name := range names {
		if !queueName.MatchString(name) || len(name) > maxQueueName || slices.Contains(names[:i], name) {
			return fault.OnField(fault.Unprocessable, "queues", "invalid_value", "can't have the name %q", name)
		}
	}

	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && len(text) <= maxURL {
		u.RawQuery = ""
		err = outbound.CheckAddress(u.String())
	}
	if err != nil || len(text) > maxURL {
		return fault.OnField(fault.Unprocessable, "endpoint", "invalid_format",
			"must be functions://NAME, or an https URL, of at most %d bytes, without user and fragment", maxURL)
	}

	return nil
}

const (
	maxQueueName   = 47 // bytes
	maxHeaders     = 20
	maxHeaderValue = 2000 // bytes
)

var (
	headerName  = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)
	queueName   = regexp.MustCompile(`^[^A-Z$;'\x00-\x1f]+$`) // see pgmq.validate_queue_name
	headerValue = regexp.MustCompile(`^[\x20-\x7e]*$`)
	// ownHeaders are those that Socle and HTTP itself set.
	ownHeaders = []string{"connection", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding",
		"upgrade", "user-agent", "webhook-id", "webhook-signature", "webhook-timestamp"}
)

func checkHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return fault.OnField(fault.Unprocessable, "headers", "too_many", "must have at most %d members", maxHeaders)
	}

	for name, value := range headers {
		switch {
		case !headerName.MatchString(name) || slices.Contains(ownHeaders, strings.ToLower(name)):
			return fault.OnField(fault.Unprocessable, "headers", "invalid_value", "can't have the name %q", name)
		case !headerValue.MatchString(value) || len(value) > maxHeaderValue:
			return fault.OnField(fault.Unprocessable, "headers", "invalid_value",
				"has a value for %s that is no text of ASCII of at most %d bytes", name, maxHeaderValue)
		}
	}

	return nil
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func isFalse(b *bool) bool { return b != nil && !*b }
