package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

type modelsResponse struct {
	Default   *string              `json:"default"`
	Fast      *string              `json:"fast"`
	Providers []core.ModelProvider `json:"providers"`
}

// ListModels is GET /v1/models: the models in use and the providers that can be chosen from.
func (h *Handlers) ListModels(c *fiber.Ctx, _ core.Caller) error {
	set, err := h.Models.ModelSettings(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(modelsResponse{Default: respond.OrNull(set.Default), Fast: respond.OrNull(set.Fast), Providers: respond.OrEmpty(set.Providers)})
}

type modelsPatch struct {
	Default *string `json:"default"`
	Fast    *string `json:"fast"`
}

// UpdateModels is PATCH /v1/models.
func (h *Handlers) UpdateModels(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[modelsPatch](c.Context())
	if err != nil {
		return err
	}
	arguments := map[string]any{}
	if r.Default != nil {
		arguments["default"] = *r.Default
	}
	if r.Fast != nil {
		arguments["fast"] = *r.Fast
	}
	if _, err := h.Tools.RunSystem(c.UserContext(), caller, "set_model_config", mustEncode(arguments)); err != nil {
		return err
	}
	return h.ListModels(c, caller)
}
