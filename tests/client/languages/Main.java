import clients.ApiClient;
import clients.ApiException;
import clients.api.AccountApi;
import clients.api.AnimalsApi;
import clients.api.SpecimensApi;
import clients.model.AccountCreation;
import clients.model.Error;
import clients.model.Pet;
import clients.model.PetCreation;
import clients.model.PetPatch;
import clients.model.PetStatus;
import clients.model.SignedUpAccount;
import clients.model.Specimen;
import operators.api.AccountsApi;

class Main {
    public static void main(String[] args) throws Exception {
        String origin = System.getenv("ORIGIN");
        ApiClient client = new ApiClient().setBasePath(origin + "/v1");
        SignedUpAccount me = new AccountApi(client).createAccount(new AccountCreation().name("Élan"));
        client.setBearerToken(me.getApiKey());
        AnimalsApi animals = new AnimalsApi(client);
        Pet pet = animals.createPet(new PetCreation().name("Élan").categoryId(1L << 62), null, null);
        animals.updatePet(pet.getId(), new PetPatch().status(PetStatus.SOLD), null, null);
        for (Pet one : animals.listPets(null, null, null, null, null, null)) {
            System.out.println(one.getName() + " " + one.getCategoryId() + " " + one.getStatus());
        }
        try {
            animals.createPet(new PetCreation().name("\u0085").categoryId(1L), null, null);
        } catch (ApiException refused) {
            Error error = Error.fromJson(refused.getResponseBody());
            System.out.println(error.getCode() + " " + error.getField());
        }
        for (Specimen one : new SpecimensApi(client).listSpecimens(null, null, null, null)) {
            System.out.println(one.getTextPlain() + " " + one.getLongNullable());
        }

        operators.ApiClient desk = new operators.ApiClient().setBasePath(origin + "/operator/v1");
        desk.setBearerToken(System.getenv("OPERATOR_TOKEN"));
        AccountsApi accounts = new AccountsApi(desk);
        accounts.createAccount(new operators.model.AccountCreation().name("Élan"));
        for (operators.model.Account account : accounts.listAccounts(null, null, null, null, null)) {
            System.out.println(account.getName() + " " + account.getPlan());
        }
    }
}
