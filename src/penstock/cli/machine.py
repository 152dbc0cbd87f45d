"""``penstock expire``, ``config`` and ``doctor``: the process and its store."""

import typer
from rich.text import Text

from penstock.cli import doctor, screens
from penstock.cli.command import command
from penstock.cli.session import Session
from penstock.cli.text import counted, one_line
from penstock.options import TABLE, shown

app = typer.Typer()


@command(app, "expire")
async def expire(session: Session) -> None:
    """Expire overdue leases and deadlines now, of all tenants, without waiting for the sweep."""
    async with session.open() as client:
        count = await client.expire_now()
    session.tell({"expired": count}, f"expired {counted(count, 'job')}")


@command(app, "config")
def config(session: Session) -> None:
    """Show every option, its value, and where the value came from. Passwords are masked."""
    options = session.options
    table = screens.table()
    for name in ("OPTION", "VALUE", "UNIT", "FROM"):
        table.add_column(name, overflow="fold")
    document = []
    for option in TABLE:
        value, source = getattr(options, option.name), options.came_from[option.name]
        text = shown(option, value)
        table.add_row(option.name, one_line(text) or Text("none", style="dim"), option.unit, source)
        document.append(
            {
                "name": option.name,
                "value": text if option.secret and value is not None else value,
                "unit": option.unit or None,
                "from": source,
                "flag": option.flag,
                "variable": option.variable,
            }
        )
    session.tell({"options": document}, table)


@command(app, "doctor")
async def check(session: Session) -> int:
    """Check this machine, its options and its store, and say what to do about what is wrong."""
    checks = await doctor.examine(session)
    table = screens.table()
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in checks:
        message = f"{one.message}; {one.do}" if one.do else one.message
        table.add_row(Text(one.status, style=doctor.STYLES[one.status]), one.name, one_line(message))
    table.show_header = False
    code = max(one.code for one in checks)
    session.tell(
        {
            "ok": not code,
            "checks": [
                {"name": one.name, "status": one.status, "message": one.message, "do": one.do or None} for one in checks
            ],
        },
        table,
    )
    return code
