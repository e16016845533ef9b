"""A tool server with the official SDK. It prints its address. Its sessions share the customers."""

import base64
import socket

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
READS = ToolAnnotations(read_only_hint=True)

server = MCPServer("customers", log_level="WARNING")
customers = {"7": "Ada"}
renamed = 0


class Customer(BaseModel):
    id: str
    name: str


def find(id: str) -> Customer:
    return Customer(id=id, name=customers.get(id, ""))


server.add_tool(find, description="Find a customer by id.", annotations=READS)


@server.tool(description="Rename a customer.")
def rename(id: str, name: str) -> str:
    global renamed
    customers[id] = name
    renamed += 1
    return f"renamed {renamed} times"


@server.tool(description="Show a customer.", annotations=READS)
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool(description="Change the description of find.")
def describe(text: str) -> str:
    server.remove_tool("find")
    server.add_tool(find, description=text, annotations=READS)
    return "described"


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://localhost:{listener.getsockname()[1]}/mcp", flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
