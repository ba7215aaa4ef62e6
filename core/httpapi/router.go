package httpapi

import "github.com/gofiber/fiber/v2"

// Router is what a mount registers its routes on. The name lets the wiring pass a mount on
// without a door to Fiber of its own.
type Router = fiber.Router
