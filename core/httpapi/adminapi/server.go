package adminapi

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/tools"
)

type modelsResponse struct {
	Default   *string              `json:"default"`
	Fast      *string              `json:"fast"`
	Providers []core.ModelProvider `json:"providers"`
}

// ListModels handles GET /v1/models: the models in use and the providers to choose from.
func (h *Handlers) ListModels(c *fiber.Ctx, _ core.Caller) (any, error) {
	set, err := h.Models.ModelSettings(c.UserContext())
	return modelsResponse{Default: httpio.OrNull(set.Default), Fast: httpio.OrNull(set.Fast), Providers: httpio.OrEmpty(set.Providers)}, err
}

// ModelsPatch is the request body of UpdateModels.
type ModelsPatch struct {
	Default *string `json:"default"`
	Fast    *string `json:"fast"`
}

// UpdateModels handles PATCH /v1/models.
func (h *Handlers) UpdateModels(c *fiber.Ctx, caller core.Caller, r ModelsPatch) (any, error) {
	if _, err := h.Models.SetModels(c.UserContext(), r.Default, r.Fast); err != nil {
		return nil, err
	}
	return h.ListModels(c, caller)
}

type registriesResponse struct {
	Registries []core.Registry `json:"registries"`
}

// ListRegistries handles GET /v1/registries.
func (h *Handlers) ListRegistries(*fiber.Ctx, core.Caller) (any, error) {
	return registriesResponse{httpio.OrEmpty(h.Registries.Registries())}, nil
}

const searchLimit = 20 // bundles per search by default

// SearchRegistries handles GET /v1/registries/search.
func (h *Handlers) SearchRegistries(c *fiber.Ctx, _ core.Caller) (any, error) {
	limit, err := httpio.QueryInt(c, "limit", searchLimit, 100)
	if err != nil {
		return nil, err
	}
	return tools.SearchBundles(c.UserContext(), h.Registries, tools.BundleQuery{Text: c.Query("query"), Registry: c.Query("registry"), Limit: limit})
}

type settingsResponse struct {
	Settings []config.Value `json:"settings"`
}

// ListSettings handles GET /v1/config: the settings in force and where they come from. Secrets are redacted.
func (h *Handlers) ListSettings(*fiber.Ctx, core.Caller) (any, error) {
	return settingsResponse{httpio.OrEmpty(h.Settings())}, nil
}

type pluginsResponse struct {
	Plugins []Plugin `json:"plugins"`
}

// ListPlugins handles GET /v1/plugins.
func (h *Handlers) ListPlugins(*fiber.Ctx, core.Caller) (any, error) {
	return pluginsResponse{httpio.OrEmpty(h.Plugins())}, nil
}

type auditResponse struct {
	Records    []core.AuditRecord `json:"records"`
	NextCursor *string            `json:"nextCursor"`
}

const (
	auditLimit    = 100 // records per page by default
	maxAuditLimit = 1000

	auditReads   = 4 // pages read at once, at most one per user; each reads up to 16 MiB of the file
	auditReading = 10 * time.Second
)

// NewAuditReads returns the places for Handlers.AuditReads.
func NewAuditReads() *limits.Places { return limits.NewPlaces(auditReads, 0) }

// ListAudit handles GET /v1/audit: records of all workspaces for organization admins, and of their own workspace for
// workspace admins.
func (h *Handlers) ListAudit(c *fiber.Ctx, caller core.Caller) (any, error) {
	q := core.AuditQuery{
		Workspace: c.Query("workspaceId"), Actor: c.Query("actor"), Action: c.Query("action"), Target: c.Query("target"),
		Outcome: c.Query("outcome"), Cursor: c.Query("cursor"),
	}
	if !caller.User.OrgRole.Admin() {
		if q.Workspace != "" && q.Workspace != caller.Workspace.ID {
			return nil, core.Errorf(core.CodeForbidden, "reading the audit trail of another workspace requires an organization admin or owner")
		}
		q.Workspace = caller.Workspace.ID
	}
	var err error
	if q.Limit, err = httpio.QueryInt(c, "limit", auditLimit, maxAuditLimit); err != nil {
		return nil, err
	}
	if from := c.Query("from"); from != "" {
		if q.From, _, err = httpio.ParseTime("from", from); err != nil {
			return nil, err
		}
	}
	if to := c.Query("to"); to != "" {
		var day bool
		if q.To, day, err = httpio.ParseTime("to", to); err != nil {
			return nil, err
		}
		if day {
			q.To = q.To.AddDate(0, 0, 1)
		}
	}
	wait, cancel := context.WithTimeout(c.UserContext(), auditReading)
	defer cancel()
	if h.AuditReads.Await(wait, caller.User.ID) != nil {
		return nil, core.Errorf(core.CodeRateLimited, "too many pages of the audit trail are being read at once; read one page at a time").WithRetryAfter(auditReading)
	}
	defer h.AuditReads.Release(caller.User.ID)
	page, err := h.Audit.Records(c.UserContext(), q)
	return auditResponse{Records: httpio.OrEmpty(page.Records), NextCursor: httpio.OrNull(page.Next)}, err
}
