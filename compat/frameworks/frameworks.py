"""Agent frameworks with nothing but a base URL and a key: two local functions and a tool of Parley's
in one turn, history that the client sends, and answers as objects. PARLEY_URL and PARLEY_API_KEY say
where the server is."""

import asyncio

from openai import OpenAI

from shared import BASE, KEY, MODEL, TASK, City, check, get_time, get_weather, ran


def openai_python() -> None:
    client = OpenAI(base_url=BASE, api_key=KEY)
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": f.__name__, "parameters": parameters}} for f in (get_weather, get_time)]
    messages: list = [{"role": "user", "content": TASK}]
    choice = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0]
    assert choice.finish_reason == "tool_calls", choice
    messages.append(choice.message)
    for call in choice.message.tool_calls:
        output = {"get_weather": get_weather, "get_time": get_time}[call.function.name]("Rome")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
    check("openai", client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message.content)


async def agents() -> None:
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=BASE, api_key=KEY)
    tools = [function_tool(get_weather), function_tool(get_time)]
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        agent = Agent(name="a", instructions="Be brief.", model=kind(model=MODEL, openai_client=client), tools=tools)
        check(kind.__name__, (await Runner.run(agent, TASK)).final_output)
        streamed = Runner.run_streamed(agent, TASK)
        async for _ in streamed.stream_events():
            pass
        check(kind.__name__ + ", streamed", streamed.final_output)
        required = Agent(name="r", model=agent.model, tools=tools, model_settings=ModelSettings(tool_choice="required"))
        check(kind.__name__ + ", required", (await Runner.run(required, TASK)).final_output)
        typed = Agent(name="t", model=agent.model, output_type=City)
        assert (await Runner.run(typed, '@structured {"city":"Oslo"}')).final_output == City(city="Oslo")


def langchain() -> None:
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ToolStrategy
    from langchain_openai import ChatOpenAI

    for responses in (False, True):
        model = ChatOpenAI(model=MODEL, base_url=BASE, api_key=KEY, use_responses_api=responses)
        agent = create_agent(model, tools=[get_weather, get_time], system_prompt="Be brief.")
        answer = agent.invoke({"messages": [{"role": "user", "content": TASK}]})["messages"][-1]
        check(f"langchain, responses {responses}", answer.text if isinstance(answer.text, str) else answer.text())
        for method in ("function_calling", "json_schema"):
            assert model.with_structured_output(City, method=method).invoke('@structured {"city":"Oslo"}') == City(city="Oslo"), method
        only = create_agent(model, tools=[], response_format=ToolStrategy(City))
        assert only.invoke({"messages": [{"role": "user", "content": '@structured {"city":"Oslo"}'}]})["structured_response"] == City(city="Oslo")


def pydantic_ai() -> None:
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=BASE, api_key=KEY)
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = kind(MODEL, provider=provider)
        result = Agent(model, tools=[get_weather, get_time]).run_sync(TASK)
        check(kind.__name__, result.output)
        for output in (City, NativeOutput(City)):
            assert Agent(model, output_type=output).run_sync('@structured {"city":"Oslo"}').output == City(city="Oslo")
        # With functions beside the output, every reply must call a tool.
        task = TASK.splitlines()[0] + '\n@call final_result {"city":"Oslo"}'
        assert Agent(model, tools=[get_weather, get_time], output_type=City).run_sync(task).output == City(city="Oslo")
        ran.clear()


if __name__ == "__main__":
    openai_python()
    asyncio.run(agents())
    langchain()
    pydantic_ai()
    print("The clients have ended well.")
