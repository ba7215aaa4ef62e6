// Package price knows what a model's tokens cost.
//
// prices.json beside it is data, embedded: dollars for a million tokens by provider and model. An
// operator's file of the same form goes over it. What neither knows has no price, which is not the
// same as being free.
//
// It is apart because prices change more often than code.
package price
