package web

// Describe formats a response as text for the model.
var Describe = describe
