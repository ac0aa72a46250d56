import os

import clients
import operators

origin = os.environ["ORIGIN"]
configuration = clients.Configuration(f"{origin}/v1")
client = clients.ApiClient(configuration)
me = clients.AccountApi(client).create_account(clients.AccountCreation(name="Élan"))
configuration.access_token = me.api_key
animals = clients.AnimalsApi(client)
pet = animals.create_pet(clients.PetCreation(name="Élan", categoryId=1 << 62))
animals.update_pet(pet.id, clients.PetPatch(status=clients.PetStatus.SOLD))
for pet in animals.list_pets():
    print(pet.name, pet.category_id, pet.status.value)
try:
    animals.create_pet(clients.PetCreation(name="\u0085", categoryId=1))
except clients.ApiException as refused:
    print(refused.data.code, refused.data.var_field)
for specimen in clients.SpecimensApi(client).list_specimens():
    print(specimen.text_plain, specimen.long_nullable or "null")

token = os.environ["OPERATOR_TOKEN"]
desk = operators.Configuration(f"{origin}/operator/v1", access_token=token)
accounts = operators.AccountsApi(operators.ApiClient(desk))
accounts.create_account(operators.AccountCreation(name="Élan"))
for account in accounts.list_accounts():
    print(account.name, account.plan)
