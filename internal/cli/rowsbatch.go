package cli

import (
	"bytes"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// rowsBatch is the command that sends a batch to the rows API.
type rowsBatch struct{ rowsCommand }

func addRowsBatch(group *cobra.Command, d *description, e environment) {
	b := &rowsBatch{rowsCommand{remote: remote{document: d, e: e}, method: http.MethodPost}}
	b.Method, b.Summary = http.MethodPost, "Run requests for rows in one transaction"

	cmd := &cobra.Command{Use: "batch [FILE]", Short: b.Summary, Args: cobra.MaximumNArgs(1), RunE: b.run,
		Example: "  socle rows batch order.json --idempotency-key 7630cbf8",
		Long: b.Summary + ": all, or none. The file, or standard input, is the body of a batch of the rows API:\n\n" +
			`{"operations": [{"id": "order", "method": "POST", "path": "orders", "headers": {"Prefer": "return=representation"}, ` +
			`"body": {"customer": 7}}, {"method": "POST", "path": "lines", "body": {"order_id": {"$ref": "order.0.id"}}}]}` +
			"\n\nIt prints the list of answers."}

	addIdempotencyKey(cmd)
	b.addCallerFlags(cmd)
	group.AddCommand(cmd)
}

func (b *rowsBatch) run(cmd *cobra.Command, args []string) error {
	file := "-"
	if len(args) > 0 {
		file = args[0]
	}

	text, err := readInput(cmd, file)
	if err != nil {
		return err
	}

	_, answer, err := b.exchange(cmd, client.Request{Method: http.MethodPost, Body: bytes.NewReader(text),
		Header: http.Header{"Content-Type": {"application/json"}}})
	if err != nil {
		return err
	}

	return printIndented(cmd.OutOrStdout(), answer)
}
