package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// made creates something by the platform API, and returns the content and the metadata.
func (c client) made(t *testing.T, path, body string) (content, metadata map[string]string) {
	t.Helper()

	a := c.send(t, "POST", path, body)
	var reply struct{ Content, Metadata map[string]any }
	if err := json.Unmarshal(a.body, &reply); a.status != 201 || err != nil {
		t.Fatalf("POST %s: got %d %s", path, a.status, a.body)
	}

	texts := func(all map[string]any) map[string]string {
		only := map[string]string{}
		for name, value := range all {
			if text, ok := value.(string); ok {
				only[name] = text
			}
		}
		return only
	}

	return texts(reply.Content), texts(reply.Metadata)
}

// objectWriter stores objects by the API of applications under one name, and then moves them to
// another.
func objectWriter(t *testing.T, c client) *writer {
	t.Helper()

	_, files := c.container(t, "objects")
	_, key := c.made(t, "/projects/"+c.project+"/keys", `{"name": "objects", "kind": "secret"}`)
	authorization := "Authorization: Bearer " + key["key"]
	root := "/projects/" + c.project + "/storage/v1/object"

	return &writer{next: 1,
		write: func(c client, n int) bool {
			name := strconv.Itoa(n)
			status, _, _ := c.do(t, "POST", root+"/objects/new/"+name, writerContent("object", n), authorization,
				"Content-Type: text/plain")
			if status != 200 {
				return false
			}

			status, _, _ = c.do(t, "POST", root+"/move", []byte(`{"bucketId": "objects", "sourceKey": "new/`+name+
				`", "destinationKey": "moved/`+name+`"}`), authorization, "Content-Type: application/json")
			return status == 200
		},
		check: func(c client, w *writer) {
			for n := 1; n < w.next; n++ {
				name, content := strconv.Itoa(n), writerContent("object", n)
				acknowledged := slices.Contains(w.acknowledged, n)
				moved := c.wantComplete(t, files+"moved/"+name, content, !acknowledged)
				if c.wantComplete(t, files+"new/"+name, content, true) && moved {
					t.Errorf("object %d has both names", n)
				}
			}
		}}
}

// objectResumer stores objects in parts by the API of applications.
func objectResumer(t *testing.T, c client) *writer {
	t.Helper()

	_, files := c.container(t, "resumed-objects")
	_, key := c.made(t, "/projects/"+c.project+"/keys", `{"name": "resumer", "kind": "secret"}`)
	headers := []string{tusVersion, "Authorization: Bearer " + key["key"]}
	bucket := "bucketName " + base64.StdEncoding.EncodeToString([]byte("resumed-objects"))

	return tusWriter(t, files, headers, func(c client, name, length string) (location string, ok bool) {
		status, h, _ := c.do(t, "POST", "/projects/"+c.project+"/storage/v1/upload/resumable", nil, append(headers,
			length, "Upload-Metadata: "+bucket+",objectName "+base64.StdEncoding.EncodeToString([]byte(name)))...)

		return h.Get("Location"), status == 201
	})
}

// multipartWriter stores objects by multipart uploads of the S3 protocol, and replaces a part of
// each.
func multipartWriter(t *testing.T, c client) *writer {
	t.Helper()

	_, files := c.container(t, "multipart")
	key, secret := c.made(t, "/projects/"+c.project+"/s3-keys", `{"name": "crashes"}`)
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key["accessKeyId"], SecretAccessKey: secret["secretAccessKey"]}, nil
	})
	bucket := aws.String("multipart")

	store := func(c client, name string, content []byte) error {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()

		service := s3.New(s3.Options{BaseEndpoint: aws.String(c.url + "/projects/" + c.project + "/storage/v1/s3"),
			UsePathStyle: true, Region: "us-east-1", RetryMaxAttempts: 1, Credentials: credentials})
		upload, err := service.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: &name})
		if err != nil {
			return err
		}

		var part *s3.UploadPartOutput
		for _, body := range []io.ReadSeeker{bytes.NewReader([]byte("replaced")), bytes.NewReader(content)} {
			part, err = service.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: bucket, Key: &name, UploadId: upload.UploadId, PartNumber: aws.Int32(1), Body: body,
			})
			if err != nil {
				return err
			}
		}

		_, err = service.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: bucket, Key: &name, UploadId: upload.UploadId, MultipartUpload: &types.CompletedMultipartUpload{
				Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}},
		})

		return err
	}

	return &writer{next: 1,
		write: func(c client, n int) bool { return store(c, strconv.Itoa(n), writerContent("multipart", n)) == nil },
		check: func(c client, w *writer) {
			for n := 1; n < w.next; n++ {
				acknowledged := slices.Contains(w.acknowledged, n)
				c.wantComplete(t, files+strconv.Itoa(n), writerContent("multipart", n), !acknowledged)
			}
		}}
}
