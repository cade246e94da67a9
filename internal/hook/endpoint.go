package hook

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	endpointTimeout  = 5 * time.Second // limit for all attempts together
	endpointAttempts = 3
	endpointBackoff  = time.Second // without Retry-After in seconds
)

// NewClient returns the client for endpoints. It allows 256 concurrent requests, 64 per project,
// apart from those of other.
func NewClient(other *outbound.Client) *outbound.Client { return other.Within(maxReply, "hook_calls") }

// Client sends requests to endpoints: an [outbound.Client] to those of the internet, that of
// package function also to edge functions of a project.
type Client interface {
	Do(ctx context.Context, tenant fair.Key, r *http.Request) (outbound.Response, error)
}

// IsEndpoint reports whether a hook's address is that of an endpoint: a URL, or an edge function.
func IsEndpoint(address string) bool {
	return strings.HasPrefix(address, "https:") || strings.HasPrefix(address, "http:") ||
		outbound.NamesFunction(address)
}

// NeedsSecret reports whether calls of an endpoint must be signed. An edge function gets no calls
// from strangers in the name of the service.
func NeedsSecret(address string) bool { return IsEndpoint(address) && !outbound.NamesFunction(address) }

// CallEndpoint posts a webhook for a tenant by a client from [NewClient], and returns the reply,
// nil for none. It retries attempts that did not reach the endpoint, and those that the endpoint
// declines for now.
func CallEndpoint(ctx context.Context, c Client, tenant fair.Key, w Webhook) ([]byte, error) {
	timeoutCtx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()

	for attempt := 1; ; attempt++ {
		r, err := w.Request(timeoutCtx)
		if err != nil {
			return nil, err
		}

		res, err := c.Do(timeoutCtx, tenant, r)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case timeoutCtx.Err() != nil, errors.Is(err, fair.ErrBusy):
			return nil, Failure("hook_timeout", "Failed to reach hook within maximum time of %f seconds",
				endpointTimeout.Seconds()).WithCause(err)
		}

		wait, retry := retryAfter(res, err)
		if ends, _ := timeoutCtx.Deadline(); !retry || attempt == endpointAttempts || time.Until(ends) < wait {
			return endpointReply(res, err)
		}

		if err := tick.Pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// retryAfter reports whether an attempt should be retried, and the backoff.
func retryAfter(res outbound.Response, err error) (wait time.Duration, again bool) {
	switch {
	case errors.Is(err, outbound.ErrNetwork), errors.Is(err, outbound.ErrRedirect),
		errors.Is(err, outbound.ErrTooLarge):
		return 0, false
	case err != nil:
		return endpointBackoff, true
	case res.Status != http.StatusTooManyRequests && res.Status != http.StatusServiceUnavailable:
		return 0, false
	}

	header := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(endpointTimeout/time.Second))) * time.Second, true
	}

	return endpointBackoff, header != ""
}

// endpointReply returns a response's reply. Its text appears in no error.
func endpointReply(res outbound.Response, err error) ([]byte, error) {
	switch {
	case errors.Is(err, outbound.ErrTooLarge):
		return nil, errReplyTooLarge()
	case err != nil: // reveals nothing about the server's networks
		return nil, Failure("hook_timeout_after_retry", "Failed to reach hook after maximum retries").WithCause(err)
	}

	switch res.Status {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK, http.StatusAccepted:
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return nil, Failure("unexpected_failure", "Service currently unavailable due to hook")
	case http.StatusBadRequest:
		return nil, Failure("unexpected_failure", "Invalid payload sent to hook")
	case http.StatusUnauthorized:
		return nil, Failure("unexpected_failure", "Hook requires authorization token")
	default:
		return nil, Failure("unexpected_failure", "Unexpected status code returned from hook: %d", res.Status)
	}

	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, Failure("hook_payload_invalid_content_type",
			"Invalid JSON response: the Content-Type must be application/json")
	}

	return res.Body, nil
}
