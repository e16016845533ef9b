package web

// Describe makes a text of an answer.
var Describe = describe
