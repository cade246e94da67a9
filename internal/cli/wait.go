package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/tick"
)

// waitPaths are the paths of the objects that tell how the work of an operation goes. {uuid} and
// {name} are those of its response, . is the path of the request.
var waitPaths = map[string]string{
	"createBackup":     "/backups/{uuid}",
	"verifyBackup":     "/backups/{uuid}",
	"restoreBackup":    "/restores/{uuid}",
	"createCompaction": ".",
	"createIndex":      "./{name}",
}

const (
	minPollInterval = 100 * time.Millisecond
	maxPollInterval = 2 * time.Second
)

// wait polls until the work of an operation is done, if the command is to wait. It returns the
// last response, and fails if the work has failed.
func (r *remote) wait(
	cmd *cobra.Command, c *client.Client, req client.Request, first *client.Reply,
) (*client.Reply, error) {
	if yes, _ := cmd.Flags().GetBool("wait"); !yes {
		return first, nil
	}

	start, err := newReply(first)
	if err != nil {
		return nil, err
	}

	address := pollPath(waitPaths[r.ID], req.Path, start)
	line := newStatusLine(cmd.ErrOrStderr())
	defer line.end()

	for reply, interval := first, minPollInterval; ; interval = min(2*interval, maxPollInterval) {
		p, err := newReply(reply)
		if err != nil {
			return nil, err
		}

		status, isDone, err := progressOf(r.ID, start, p)
		if isDone || err != nil {
			return reply, err
		}

		line.show(status)

		if tick.Pause(cmd.Context(), interval) != nil {
			return nil, errors.New("no longer waiting; the work goes on")
		}

		if reply, err = c.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: address}); err != nil {
			return nil, err
		}
	}
}

// pollPath fills a path of waitPaths.
func pollPath(template, request string, start *reply) string {
	content, _ := start.content.(record)
	for _, name := range []string{"uuid", "name"} {
		text, _ := content.value(name).(string)
		template = strings.ReplaceAll(template, "{"+name+"}", url.PathEscape(text))
	}

	if after, ok := strings.CutPrefix(template, "."); ok {
		return path.Clean(request + after)
	}

	return template
}

// progressOf returns how far the work is. It fails if the work has failed.
func progressOf(id string, start, now *reply) (status string, done bool, err error) {
	content, _ := now.content.(record)
	if id == "verifyBackup" {
		if text, _ := now.metadata.value("proofError").(string); text != "" {
			return "", false, errors.New("the backup is not proven: " + text)
		}

		return "proving", start.metadata.value("triedAt") != now.metadata.value("triedAt"), nil
	}

	status, _ = content.value("status").(string)
	if status == "failed" {
		text, _ := content.value("error").(string)
		return "", false, errors.New("the work has failed: " + text)
	}

	if slices.Contains([]string{"completed", "ready"}, status) {
		return status, true, nil
	}

	if percent := content.value("progress"); percent != nil {
		status = fmt.Sprintf("%s, %v %%", status, percent)
	}

	return status, false, nil
}

// pages reports whether the operation lists pages.
func (r *remote) pages() bool { return r.takes("query", "page") || r.takes("query", "cursor") }

// do sends the request of the command, and the requests for further pages with --all.
func (r *remote) do(cmd *cobra.Command, c *client.Client, req client.Request) (*client.Reply, error) {
	all, _ := cmd.Flags().GetBool("all")
	if all && !req.Query.Has("limit") {
		req.Query.Set("limit", strconv.Itoa(namesPerPage))
	}

	first, err := c.Do(cmd.Context(), req)
	if err != nil || !all {
		return first, err
	}

	merged := map[string]map[string]json.RawMessage{}
	mergeMaps(merged, first.Metadata)

	last := first
	for turnPage(last, req.Query) {
		if last, err = c.Do(cmd.Context(), req); err != nil {
			return nil, err
		}

		mergeMaps(merged, last.Metadata)

		if len(last.Content) > len("[]") {
			first.Content = append(append(bytes.TrimSuffix(first.Content, []byte("]")), ','), last.Content[1:]...)
		}
	}

	first.Metadata, err = json.Marshal(merged)
	return first, err
}

// mergeMaps adds the metadata of a page about single items, such as the UUIDs of tables by name, to
// that of earlier pages.
func mergeMaps(merged map[string]map[string]json.RawMessage, metadata json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(metadata, &members) != nil {
		return
	}

	for name, text := range members {
		var page map[string]json.RawMessage
		if json.Unmarshal(text, &page) != nil || page == nil {
			continue
		}

		if merged[name] == nil {
			merged[name] = page
		}

		maps.Copy(merged[name], page)
	}
}

// turnPage sets the query of the page after a reply, if there is one.
func turnPage(reply *client.Reply, query url.Values) bool {
	var m struct {
		Page, TotalPages int
		Next             string
	}
	if err := json.Unmarshal(reply.Metadata, &m); err != nil {
		return false
	}

	switch {
	case m.Next != "":
		query.Set("cursor", m.Next)
	case m.Page > 0 && m.Page < m.TotalPages:
		query.Set("page", strconv.Itoa(m.Page+1))
	default:
		return false
	}

	return true
}
