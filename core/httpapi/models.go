package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

type modelsResponse struct {
	Default   *string              `json:"default"`
	Fast      *string              `json:"fast"`
	Providers []core.ModelProvider `json:"providers"`
}

// listModels is GET /v1/models: the models in use and the providers that can be chosen from.
func (s *Server) listModels(c *fiber.Ctx, _ core.Caller) error {
	set, err := s.chat.ModelSettings(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(modelsResponse{Default: orNull(set.Default), Fast: orNull(set.Fast), Providers: orEmpty(set.Providers)})
}

type modelsPatch struct {
	Default *string `json:"default"`
	Fast    *string `json:"fast"`
}

// updateModels is PATCH /v1/models.
func (s *Server) updateModels(c *fiber.Ctx, caller core.Caller) error {
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
	if _, err := s.tools.RunSystem(c.UserContext(), caller, "set_model_config", mustEncode(arguments)); err != nil {
		return err
	}
	return s.listModels(c, caller)
}
