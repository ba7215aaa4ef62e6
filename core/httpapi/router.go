package httpapi

import (
	"github.com/gofiber/fiber/v2"
)

// Router is what a mount registers its routes on. The alias lets package server pass mounts on without
// importing Fiber.
type Router = fiber.Router
