export default {
  input: "./generated/openapi.json",
  output: { path: "./src/client", importFileExtension: ".js" },
};
