import os

from clients import AuthenticatedClient, Client
from clients.api.account import create_account
from clients.api.animals import create_pet, list_pets, update_pet
from clients.api.specimens import list_specimens
from clients.models import AccountCreation, PetCreation, PetPatch, PetStatus
from operators import AuthenticatedClient as OperatorClient
from operators.api.accounts import create_account as create_account_as_operator
from operators.api.accounts import list_accounts
from operators.models import AccountCreation as OperatorsAccountCreation

origin = os.environ["ORIGIN"]
anyone = Client(f"{origin}/v1")
me = create_account.sync(client=anyone, body=AccountCreation("Élan"))
client = AuthenticatedClient(f"{origin}/v1", token=me.api_key)
pet = create_pet.sync(client=client, body=PetCreation("Élan", 1 << 62))
update_pet.sync(pet.id, client=client, body=PetPatch(status=PetStatus.SOLD))
for pet in list_pets.sync(client=client):
    print(pet.name, pet.category_id, pet.status)
refused = create_pet.sync(client=client, body=PetCreation("\u0085", 1))
print(refused.code, refused.field)
for specimen in list_specimens.sync(client=client):
    print(specimen.text_plain, specimen.long_nullable or "null")

operator = OperatorClient(f"{origin}/operator/v1", token=os.environ["OPERATOR_TOKEN"])
create_account_as_operator.sync(client=operator, body=OperatorsAccountCreation("Élan"))
for account in list_accounts.sync(client=operator):
    print(account.name, account.plan)
