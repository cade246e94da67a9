package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	followInterval = time.Second
	// followSlack is how much later than its start a request may appear in the log.
	followSlack = 30 * time.Second
	followLimit = 100
)

// follow prints requests as they appear in the log, until the command is interrupted.
func (r *remote) follow(cmd *cobra.Command, c *client.Client, req client.Request) error {
	seenAt := map[string]time.Time{}
	for first := true; ; first = false {
		if !first {
			req.Query.Set("limit", strconv.Itoa(followLimit))
			req.Query.Set("from", time.Now().Add(-followSlack).UTC().Format(time.RFC3339))
		}

		reply, err := c.Do(cmd.Context(), req)
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return r.explain(cmd, err)
		}

		p, err := newReply(reply)
		if err != nil {
			return err
		}

		items, _ := p.content.([]any)
		for _, o := range unseen(seenAt, items, time.Now()) {
			if err := printFollowed(cmd.OutOrStdout(), o, asJSON(cmd)); err != nil {
				return err
			}
		}

		if tick.Pause(cmd.Context(), followInterval) != nil {
			return nil
		}
	}
}

// unseen returns the requests that were not printed yet, the oldest first, and notes them.
func unseen(seen map[string]time.Time, items []any, now time.Time) []record {
	var fresh []record
	for i := len(items) - 1; i >= 0; i-- {
		o, _ := items[i].(record)
		id, _ := o.value("uuid").(string)
		if _, ok := seen[id]; !ok {
			fresh = append(fresh, o)
		}
		seen[id] = now
	}

	for id, at := range seen {
		if now.Sub(at) > 2*followSlack {
			delete(seen, id)
		}
	}

	return fresh
}

// printFollowed prints a request in a line.
func printFollowed(w io.Writer, o record, asJSON bool) error {
	if asJSON {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}

		_, err = fmt.Fprintln(w, string(text))
		return err
	}

	o = deriveRequest(o)
	shown := func(name string) string { return cell(name, o.value(name)) }
	line := fmt.Sprintf("%s  %s  %s  %-6s  %s", shown("id"), shown("at"), shown("status"), shown("method"),
		shown("request"))
	for _, name := range []string{"code", "errorMessage", "by"} {
		if text := shown(name); text != "" {
			line += "  " + text
		}
	}

	_, err := fmt.Fprintln(w, line)
	return err
}
