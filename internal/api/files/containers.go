package files

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerContainers(p *operation.Pipeline) {
	operation.HandleInProject(p, createContainer, s.createContainer, nil)
	operation.HandleInProject(p, listContainers, s.listContainers, nil)
	operation.HandleInProject(p, getContainer, s.getContainer, nil)
	operation.HandleInProject(p, updateContainer, s.updateContainer, s.findContainer)
	operation.HandleInProject(p, deleteContainer, s.deleteContainer, nil)
}

// containerMetadata has the fields that the specified Container lacks.
type containerMetadata struct {
	AllowedMimeTypes []string `json:"allowedMimeTypes" doc:"Accepted media types, such as image/png or image/*; an empty list accepts all."`
}

type containerAnswer = operation.Answer[object.Container, containerMetadata]

// withURL sets the URL of a container's files.
func (s *Server) withURL(c object.Container) object.Container {
	c.URL = s.PublicURL + "/files/" + c.ProjectUUID.String() + "/" + c.UUID.String()
	return c
}

func (s *Server) answerContainer(c object.Container, err error) (containerAnswer, error) {
	return containerAnswer{Content: s.withURL(c), Metadata: containerMetadata{c.Allowed}}, err
}

var createContainer = operation.Operation{
	ID: "createContainer", Method: "POST", Path: "/containers", Summary: "Create a container",
	Access: operation.Project(account.Developer), Errors: operation.CreateErrors,
	Example: `{"name": "covers", "is_public": true, "allowed_mime_types": ["image/*"]}`,
}

type createContainerInput struct {
	Body struct {
		Name        string   `json:"name" doc:"3 to 63 letters, digits, _ or -; unique in the project."`
		Description string   `json:"description,omitempty" maxLength:"500"`
		IsPublic    bool     `json:"is_public,omitempty" doc:"Whether files can be read without a token."`
		MaxFileSize *int64   `json:"max_file_size,omitempty" doc:"Maximum size of a file in bytes."`
		Allowed     []string `json:"allowed_mime_types,omitempty" maxItems:"100" doc:"Accepted media types, such as image/png or image/*; an empty list accepts all."`
		operation.ProjectInBody
	}
}

func (s *Server) createContainer(
	ctx context.Context, p *projectdb.Project, in *createContainerInput,
) (containerAnswer, error) {
	b := in.Body
	return s.answerContainer(object.CreateContainer(ctx, p, member(ctx), object.NewContainer{
		Name: b.Name, Description: b.Description, IsPublic: b.IsPublic,
		MaxFileSize: b.MaxFileSize, Allowed: b.Allowed}))
}

var listContainers = operation.Operation{
	ID: "listContainers", Method: "GET", Path: "/containers", Summary: "List containers",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 500},
}

type listContainersInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
}

func (s *Server) listContainers(
	ctx context.Context, p *projectdb.Project, in *listContainersInput,
) (operation.Answer[[]object.Container, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	containers, total, err := object.ListContainers(ctx, p, page)
	for i, c := range containers {
		containers[i] = s.withURL(c)
	}

	return operation.ListOf(containers, page, total), err
}

var getContainer = operation.Operation{
	ID: "getContainer", Method: "GET", Path: "/containers/{containerUUID}", Summary: "Get a container",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type getContainerInput struct {
	UUID uuid.UUID `path:"containerUUID" format:"uuid"`
}

func (s *Server) getContainer(
	ctx context.Context, p *projectdb.Project, in *getContainerInput,
) (containerAnswer, error) {
	return s.answerContainer(object.GetContainer(ctx, p, member(ctx), object.ContainerRef{UUID: in.UUID}))
}

var updateContainer = operation.Operation{
	ID: "updateContainer", Method: "PUT", Path: "/containers/{containerUUID}", Summary: "Update a container",
	Access: operation.Project(account.Developer), Specified: true, Errors: operation.SpecifiedBodyErrors,
	Notes: "Omitted members stay unchanged. Existing files may exceed a new size limit or have a type that is no " +
		"longer accepted.",
	Example: `{"is_public": true}`,
}

type updateContainerInput struct {
	UUID uuid.UUID `path:"containerUUID" format:"uuid"`
	Body struct {
		Name        *string   `json:"name,omitempty" doc:"3 to 63 letters, digits, _ or -; unique in the project."`
		Description *string   `json:"description,omitempty" maxLength:"500"`
		IsPublic    *bool     `json:"is_public,omitempty" doc:"Whether files can be read without a token."`
		MaxFileSize *int64    `json:"max_file_size,omitempty" doc:"Maximum size of a file in bytes."`
		Allowed     *[]string `json:"allowed_mime_types,omitempty" doc:"Accepted media types, such as image/png or image/*; an empty list accepts all."`
		operation.ProjectInBody
	}
}

func (s *Server) findContainer(ctx context.Context, p *projectdb.Project, in *updateContainerInput) error {
	_, err := object.GetContainer(ctx, p, member(ctx), object.ContainerRef{UUID: in.UUID})
	return err
}

func (s *Server) updateContainer(
	ctx context.Context, p *projectdb.Project, in *updateContainerInput,
) (containerAnswer, error) {
	b := in.Body
	return s.answerContainer(object.UpdateContainer(ctx, p, member(ctx), object.ContainerRef{UUID: in.UUID},
		object.ContainerUpdate{Name: b.Name, Description: b.Description, IsPublic: b.IsPublic,
			MaxFileSize: b.MaxFileSize, Allowed: b.Allowed}))
}

var deleteContainer = operation.Operation{
	ID: "deleteContainer", Method: "DELETE", Path: "/containers/{containerUUID}", Summary: "Delete a container",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Timeout: operation.LongTimeout, Destructive: operation.Always,
	Notes: "A container with files is deleted only with `force=true`. It disappears at once; its bytes are removed " +
		"in the background. The content is the deleted container.",
}

type deleteContainerInput struct {
	UUID  uuid.UUID `path:"containerUUID" format:"uuid"`
	Force bool      `query:"force" default:"false"`
}

func (s *Server) deleteContainer(
	ctx context.Context, p *projectdb.Project, in *deleteContainerInput,
) (containerAnswer, error) {
	c, err := object.DeleteContainer(ctx, p, member(ctx), object.ContainerRef{UUID: in.UUID}, in.Force)
	if err == nil && c.TotalFiles > 0 {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return s.answerContainer(c, err)
}
