package cli

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// complete adds what the response of an operation lacks: to a list of backups their sizes and
// proofs, which the API tells of single backups only.
func (r *remote) complete(cmd *cobra.Command, c *client.Client, p *reply) error {
	items, _ := p.content.([]any)
	if r.ID != "listBackups" {
		return nil
	}

	for i, item := range items {
		backup, ok := item.(record)
		if !ok {
			continue
		}

		id, _ := backup.value("uuid").(string)
		answer, err := c.Do(cmd.Context(), client.Request{
			Method: http.MethodGet,
			Path:   "/backups/" + url.PathEscape(id),
		})
		if err != nil {
			return err
		}

		one, err := newReply(answer)
		if err != nil {
			return err
		}

		for _, name := range []string{"size", "provenAt", "proofError"} {
			backup = append(backup, member{name, one.metadata.value(name)})
		}

		items[i] = backup
	}

	return nil
}
