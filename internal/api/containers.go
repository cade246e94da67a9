package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerContainers() {
	within(s, createContainer, s.createContainer, nil)
	within(s, updateContainer, s.updateContainer, s.findContainer)
}

// at completes a container with the address of its files.
func (s *Server) at(c object.Container, err error) (object.Container, error) {
	c.URL = s.publicURL + "/files/" + c.ProjectUUID.String() + "/" + c.UUID.String()
	return c, err
}

var createContainer = Operation{
	ID: "createContainer", Method: "POST", Path: "/containers", Summary: "Create a container",
	Access: project(platform.Developer), Errors: creating,
}

type createContainerInput struct {
	Body struct {
		Name        string `json:"name" doc:"3 to 63 letters, digits, _ or -; unique in the project."`
		Description string `json:"description,omitempty" maxLength:"500"`
		IsPublic    bool   `json:"is_public,omitempty" doc:"Whether its files are readable without a token."`
		MaxFileSize *int64 `json:"max_file_size,omitempty" doc:"Bytes."`
		ProjectInBody
	}
}

func (s *Server) createContainer(ctx context.Context, p *tenant.Project, in *createContainerInput) (object.Container, error) {
	b := in.Body
	return s.at(object.CreateContainer(ctx, p, caller(ctx).User, object.NewContainer{
		Name: b.Name, Description: b.Description, IsPublic: b.IsPublic, MaxFileSize: b.MaxFileSize}))
}

var updateContainer = Operation{
	ID: "updateContainer", Method: "PUT", Path: "/containers/{containerUUID}", Summary: "Change a container",
	Access: project(platform.Developer), Errors: specifiedWithBody,
	Notes: "What the body does not name stays as it is. Files that are there already may be larger than a new limit.",
}

type updateContainerInput struct {
	UUID uuid.UUID `path:"containerUUID" format:"uuid"`
	Body struct {
		Name        *string `json:"name,omitempty" doc:"3 to 63 letters, digits, _ or -; unique in the project."`
		Description *string `json:"description,omitempty" maxLength:"500"`
		IsPublic    *bool   `json:"is_public,omitempty" doc:"Whether its files are readable without a token."`
		MaxFileSize *int64  `json:"max_file_size,omitempty" doc:"Bytes."`
		ProjectInBody
	}
}

func (s *Server) findContainer(ctx context.Context, p *tenant.Project, in *updateContainerInput) error {
	_, err := object.GetContainer(ctx, p, in.UUID)
	return err
}

func (s *Server) updateContainer(ctx context.Context, p *tenant.Project, in *updateContainerInput) (object.Container, error) {
	b := in.Body
	return s.at(object.UpdateContainer(ctx, p, caller(ctx).User, in.UUID, object.ContainerUpdate{
		Name: b.Name, Description: b.Description, IsPublic: b.IsPublic, MaxFileSize: b.MaxFileSize}))
}
