package cli

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// upload streams the flags as the parts of a form, the file last.
func (r *remote) upload(cmd *cobra.Command, c *client.Client, req client.Request) error {
	in, out := io.Pipe()
	form := multipart.NewWriter(out)

	file, name, size, err := r.open(cmd)
	if err != nil {
		return err
	}

	if file != nil {
		defer file.Close()
	}

	progress := newProgress(cmd.ErrOrStderr(), size)
	go func() {
		err := r.writeParts(form, file, name, progress)
		if err == nil {
			err = form.Close() // not after a failed read: the server would store the part as the whole
		}
		out.CloseWithError(err) // nil ends the body
	}()

	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Body = in
	reply, err := c.Do(cmd.Context(), req)
	in.CloseWithError(io.ErrClosedPipe) // stops the writer if the server has answered early
	progress.end()

	return r.show(cmd, c, reply, err)
}

// rawMedia is the media type of a body that is a file of any type.
const rawMedia = "*/*"

// send streams a file as the body itself.
func (r *remote) send(cmd *cobra.Command, c *client.Client, req client.Request) error {
	file, name, size, err := r.open(cmd)
	if err != nil {
		return err
	}
	defer file.Close()

	progress := newProgress(cmd.ErrOrStderr(), size)
	kind := mime.TypeByExtension(filepath.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}

	req.Header.Set("Content-Type", kind)
	req.Body = io.TeeReader(file, progress)
	reply, err := c.Do(cmd.Context(), req)
	progress.end()

	return r.show(cmd, c, reply, err)
}

// open opens the file that the flag of a binary field names.
func (r *remote) open(cmd *cobra.Command) (file io.ReadCloser, name string, size int64, err error) {
	for _, member := range r.members {
		if r.body.Properties[member].Format != "binary" {
			continue
		}

		path := r.flags[member].String()
		if path == "-" {
			return io.NopCloser(cmd.InOrStdin()), "", -1, nil
		}

		f, err := os.Open(path)
		if err != nil {
			return nil, "", 0, err
		}

		info, err := f.Stat()
		if err != nil {
			return nil, "", 0, errors.Join(err, f.Close())
		}

		return f, filepath.Base(path), info.Size(), nil
	}

	return nil, "", 0, nil
}

func (r *remote) writeParts(form *multipart.Writer, file io.Reader, name string, progress io.Writer) error {
	for _, member := range r.members {
		v := r.flags[member]
		if r.body.Properties[member].Format == "binary" || !v.given() {
			continue
		}

		if err := form.WriteField(member, v.String()); err != nil {
			return err
		}
	}

	for _, member := range r.members {
		if r.body.Properties[member].Format != "binary" {
			continue
		}

		kind := mime.TypeByExtension(filepath.Ext(name))
		if kind == "" {
			kind = "application/octet-stream"
		}
		if name == "" {
			name = "stdin"
		}

		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition(member, name)}, "Content-Type": {kind}})
		if err != nil {
			return err
		}

		if _, err := io.Copy(part, io.TeeReader(file, progress)); err != nil {
			return err
		}
	}

	return nil
}

// dirOf returns the folder of a file's path.
func dirOf(path string) string {
	if dir := filepath.Dir(path); strings.TrimSpace(dir) != "" {
		return dir
	}
	return "."
}
