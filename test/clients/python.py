"""Uses the client that openapi-python-client generated.

The program passes mypy --strict and sends typical requests to a real server. Its first argument is the facts as
JSON, and it prints the results as JSON. It sends some whole numbers as 46.0, like clients in languages where
all numbers are floats.
"""

import base64
import json
import sys
from typing import TypeVar, cast

from ropewalk_client import Client
from ropewalk_client.api.apps import get_app, import_apps, install_app, list_apps
from ropewalk_client.api.chat import chat
from ropewalk_client.api.conversations import (
    export_conversation,
    fork_conversation,
    get_conversation,
    import_conversation,
    list_conversations,
)
from ropewalk_client.api.tools import call_tool
from ropewalk_client.api.workspace import get_open_api
from ropewalk_client.models import (
    App,
    AppDetails,
    AppEnvironment,
    AttachedContent,
    ChatAnswer,
    ChatBody,
    ChatBodyMetadata,
    Conversation,
    ConversationExport,
    ExportConversationFormat,
    ForkConversationBody,
    GetOpenApiResponse200,
    ImportRequest,
    ImportRequestMcpServers,
    ImportResult,
    InstallFromPath,
    InvalidInput,
    ListAppsResponse200,
    ListConversationsResponse200,
    ToolArguments,
    ToolCallRequest,
    ToolResult,
)

T = TypeVar("T")


def good(kind: type[T], answer: object) -> T:
    """Returns the answer, or exits if its type is not the expected one."""
    if not isinstance(answer, kind):
        raise SystemExit(f"got {answer!r}, not {kind.__name__}")
    return answer


def main() -> None:
    facts = json.loads(sys.argv[1])
    client = Client(base_url=facts["url"])

    environment = AppEnvironment.from_dict({"LEVEL": "1"})
    installed = good(App, install_app.sync(client=client, body=InstallFromPath(path=facts["bundle"], env=environment)))
    apps = good(ListAppsResponse200, list_apps.sync(client=client))
    details = good(AppDetails, get_app.sync(installed.name, client=client))

    def call(tool: str, arguments: dict[str, object]) -> object:
        body = ToolCallRequest(server=installed.name, tool=tool, arguments=ToolArguments.from_dict(arguments))
        return call_tool.sync(client=client, body=body)

    added = good(ToolResult, call("get-sum", {"a": 46.0, "b": 2}))
    echoed = good(ToolResult, call("echo", {"message": "text"}))
    refused = good(InvalidInput, call("get-sum", {"a": "x"}))

    question = ChatBody(
        message="hello",
        metadata=ChatBodyMetadata.from_dict({"ticket": 7.0, "tags": ["a"]}),
        max_iterations=cast(int, 46.0),
        attachments=[AttachedContent(name="a.txt", mime_type="text/plain", data=base64.b64encode(b"hello").decode())],
    )
    answer = good(ChatAnswer, chat.sync(client=client, body=question))
    conversation = good(Conversation, get_conversation.sync(answer.conversation_id, client=client))
    half = ForkConversationBody(at_message=cast(int, 1.0))
    copy = good(Conversation, fork_conversation.sync(conversation.id, client=client, body=half))
    page = good(ListConversationsResponse200, list_conversations.sync(client=client, limit=10))
    exported = good(
        ConversationExport,
        export_conversation.sync(conversation.id, client=client, format_=ExportConversationFormat.JSON),
    )
    sent = exported.to_dict()
    restored = good(Conversation, import_conversation.sync(client=client, body=ConversationExport.from_dict(sent)))
    servers = ImportRequestMcpServers.from_dict({"here": {"command": "echo", "args": ["x"], "env": {"A": "b"}}})
    plan = good(ImportResult, import_apps.sync(client=client, body=ImportRequest(mcp_servers=servers, dry_run=True)))
    document = good(GetOpenApiResponse200, get_open_api.sync(client=client))

    print(
        json.dumps(
            {
                "installed": installed.name,
                "listed": [app.name for app in apps.apps],
                "env": details.env,
                "sum": added.content[0]["text"],
                "echoed": echoed.result,
                "refused": refused.error,
                "response": answer.response,
                "metadata": conversation.metadata["ticket"],
                "forked": copy.id != conversation.id,
                "conversations": page.total_count,
                "restored": restored.id,
                "planned": plan.servers[0].status,
                "openapi": document["openapi"],
            }
        )
    )


main()
